/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/plan_message.h"

#include "probes/allocators/allocator.h"
#include "probes/plan/usdt_pool_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than a file can have: 64 functions with 64 exits each. */
#define MAX_PROBES	  4096
#define MAX_FETCH_ARGS	  256
#define MAX_FILES	  2 /* the allocator's probes, and those on pools */
#define NR_REGISTERS	  16
#define NAMED_ROW	  MAX_PROBES /* of a function that the user names; see plan_rows */

#define NAME_CHARACTERS	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define SYMBOL_CHARACTERS NAME_CHARACTERS "$.@"
/* "caller=+0(%sp):x64 ret=$retval:s32 from_entry=\5:s64"; no "@", which fetches kernel memory. */
#define FETCH_CHARACTERS NAME_CHARACTERS "=%:+-() $\\"

/* Rows of the table come first, then the mark's, then those of pools. */
static int64_t schema_number(const struct probe_schema *schema)
{
	const struct probe_schema *pool;
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);

	for (size_t i = 0; i < nr; i++)
		if (schema == &table[i])
			return (int64_t)i;
	if (schema == &probe_schema_mark)
		return (int64_t)nr;
	for (size_t i = 0; (pool = usdt_pool_probes_row(i)); i++)
		if (schema == pool)
			return (int64_t)(nr + 1 + i);
	return resource_call_of(schema) ? NAMED_ROW : -1;
}

static const struct probe_schema *schema_of_number(uint64_t number)
{
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);

	if (number < nr)
		return &table[number];
	return number == nr ? &probe_schema_mark : usdt_pool_probes_row(number - nr - 1);
}

static void get_text(struct message_reader *reader, char *ret, size_t size, const char *allowed)
{
	snprintf(ret, size, "%s", message_get_string(reader, size - 1, allowed));
}

static void put_instruction(FILE *to, const struct placement_instruction *instruction)
{
	message_put_number(to, instruction->class);
	message_put_string(to, instruction->text);
}

static void get_instruction(struct message_reader *reader, struct placement_instruction *ret)
{
	ret->class = (enum placement_class)message_get_number(reader, 0, PLACEMENT_UNKNOWN);
	get_text(reader, ret->text, sizeof(ret->text), NULL);
}

static void put_point(FILE *to, const struct single_trap_point *point)
{
	message_put_number(to, point->offset);
	put_instruction(to, &point->instruction);
	message_put_number(to, (uint64_t)point->size_register);
	message_put_number(to, (uint64_t)point->block_register);
	message_put_number(to, point->frame_bytes);
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		message_put_number(to, (uint64_t)(int64_t)point->saved[i]);
}

static void get_point(struct message_reader *reader, uint64_t file_size,
		      struct single_trap_point *ret)
{
	ret->offset = (uint64_t)message_get_number(reader, 0, (int64_t)file_size);
	get_instruction(reader, &ret->instruction);
	ret->size_register = (int)message_get_number(reader, SINGLE_TRAP_NOWHERE, NR_REGISTERS - 1);
	ret->block_register =
		(int)message_get_number(reader, SINGLE_TRAP_IS_NULL, NR_REGISTERS - 1);
	ret->frame_bytes = (uint32_t)message_get_number(reader, 0, SINGLE_TRAP_MAX_FRAME_BYTES);
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		ret->saved[i] = (int32_t)message_get_number(reader, SINGLE_TRAP_UNCHANGED,
							    SINGLE_TRAP_MAX_FRAME_BYTES);
}

static void put_probe(FILE *to, const struct probe *probe)
{
	message_put_number(to, (uint64_t)schema_number(probe->schema));
	message_put_number(to, (uint64_t)probe->first_arg);
	message_put_number(to, probe->point);
	message_put_string(to, schema_number(probe->schema) == NAMED_ROW ? "" : probe->symbol);
	message_put_string(to, probe->event);
	message_put_number(to, probe->function_offset);
	message_put_number(to, probe->offset);
	put_instruction(to, &probe->instruction);
	message_put_string(to, probe->fetch_args);
	message_put_number(to, probe->nr_points);
	for (size_t i = 0; i < probe->nr_points; i++)
		put_point(to, &probe->points[i]);
}

/* Returns 0, also if the message is bad, or -ENOMEM. */
static int get_probe(struct message_reader *reader, uint64_t file_size,
		     const struct plan_rows *rows, struct probe *ret)
{
	uint64_t number = (uint64_t)message_get_number(reader, 0, NAMED_ROW);
	const struct resource_call *named;

	ret->schema = schema_of_number(number);
	ret->first_arg = (int)message_get_number(reader, 0, PROBE_MAX_ARGS);
	ret->point = (enum probe_point)message_get_number(reader, PROBE_ENTRY, PROBE_EXIT);
	get_text(reader, ret->symbol, sizeof(ret->symbol), SYMBOL_CHARACTERS);
	get_text(reader, ret->event, sizeof(ret->event), NAME_CHARACTERS);
	named = number == NAMED_ROW && rows ? rows->find(rows->context, ret->event, ret->point)
					    : NULL;
	if (named) {
		ret->schema = &named->schema;
		snprintf(ret->symbol, sizeof(ret->symbol), "%.*s", (int)sizeof(ret->symbol) - 1,
			 named->function);
	}
	reader->is_bad |= !ret->schema;
	ret->function_offset = (uint64_t)message_get_number(reader, 0, (int64_t)file_size);
	ret->offset = (uint64_t)message_get_number(reader, 0, (int64_t)file_size);
	get_instruction(reader, &ret->instruction);
	ret->fetch_args = strdup(message_get_string(reader, MAX_FETCH_ARGS, FETCH_CHARACTERS));
	ret->nr_points = (size_t)message_get_number(reader, 0, SINGLE_TRAP_MAX_POINTS);
	ret->points = ret->nr_points ? calloc(ret->nr_points, sizeof(*ret->points)) : NULL;
	if (!ret->fetch_args || (ret->nr_points && !ret->points)) {
		ret->nr_points = 0;
		return -ENOMEM;
	}
	for (size_t i = 0; i < ret->nr_points; i++)
		get_point(reader, file_size, &ret->points[i]);
	return 0;
}

void plan_message_put(FILE *to, const struct probe_set *set)
{
	message_put_number(to, set->nr_files);
	for (size_t i = 0; i < set->nr_files; i++) {
		const struct probe_file *file = &set->files[i];
		struct group_name name = {0};

		group_name_parse(file->group, &name);
		message_put_string(to, file->allocator);
		message_put_number(to, name.build_hash);
		message_put_number(to, file->has_size_word);
		message_put_number(to, file->has_resources);
		message_put_number(to, file->nr_probes);
		for (size_t j = 0; j < file->nr_probes; j++)
			put_probe(to, &file->probes[j]);
	}
}

static int get_file(struct message_reader *reader, const struct mapped_file *mapped,
		    const struct plan_rows *rows, struct probe_file *ret)
{
	const struct probe_source source = {.fd = mapped->fd,
					    .stat = &mapped->stat,
					    .path = mapped->path,
					    .display = mapped->display};
	const char *allocator = message_get_string(reader, ALLOCATOR_NAME_MAX, NULL);
	struct group_name name;
	size_t nr;
	int err = probe_file_set_source(ret, &source, allocator, &name);

	name.build_hash = (uint32_t)message_get_number(reader, 0, UINT32_MAX);
	ret->has_size_word = message_get_number(reader, false, true);
	ret->has_resources = message_get_number(reader, false, true);
	nr = (size_t)message_get_number(reader, 1, MAX_PROBES);
	for (size_t i = 0; i < nr && !err && !reader->is_bad; i++) {
		struct probe *probe = probe_file_append(ret);

		err = probe ? get_probe(reader, (uint64_t)mapped->stat.st_size, rows, probe)
			    : -ENOMEM;
	}
	if (!err && reader->is_bad)
		err = -EBADMSG;
	return err ? err : probe_file_set_group(ret, &name);
}

int plan_message_get(struct message_reader *reader, const struct mapped_file *mapped,
		     const struct plan_rows *rows, struct probe_set *set)
{
	size_t nr_before = set->nr_files, nr = (size_t)message_get_number(reader, 0, MAX_FILES);
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		struct probe_file file = {.fd = -1};

		err = get_file(reader, mapped, rows, &file);
		if (!err)
			err = probe_set_append(set, &file);
		probe_file_deinit(&file);
	}
	if (!err && reader->is_bad)
		err = -EBADMSG;
	while (err && set->nr_files > nr_before)
		probe_file_deinit(&set->files[--set->nr_files]);
	return err;
}
