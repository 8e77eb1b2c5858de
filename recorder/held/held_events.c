/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_events.h"

#include "common/hash.h"
#include "common/perf_disk.h"
#include "common/schema/probe_events.h"
#include "recorder/events/sample_format.h"
#include "recorder/held/held_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_TYPES ((size_t)UINT16_MAX + 1)

void held_event_types_deinit(struct held_event_types *types)
{
	free(types->types);
	free(types->index);
	*types = (struct held_event_types){0};
}

/* Finds "\tfield:TYPE NAME;\toffset:N;\tsize:N;", of 4 or 8 bytes. */
static struct held_field find_field(const char *format, const char *name)
{
	const char *at = format;
	size_t len = strlen(name);
	unsigned int offset, size_bytes;

	while ((at = strstr(at, name))) {
		bool is_word = at > format && at[-1] == ' ';

		at += len;
		if (is_word && sscanf(at, ";\toffset:%u;\tsize:%u;", &offset, &size_bytes) == 2 &&
		    (size_bytes == 4 || size_bytes == 8) && offset < UINT16_MAX - 8)
			return (struct held_field){(uint16_t)offset, (uint16_t)size_bytes};
	}
	return (struct held_field){0};
}

static struct held_event_type make_type(const struct probe_schema *schema, enum probe_point point,
					const char *format)
{
	bool is_return = point == PROBE_RETURN || point == PROBE_CALL;
	struct held_event_type type = {
		.schema = schema,
		.point = point,
		.ret = find_field(format, PROBE_FIELD_RET),
		.stored = find_field(format, PROBE_FIELD_BLOCK),
		.caller = find_field(format, is_return ? "__probe_ret_ip" : PROBE_FIELD_CALLER),
		.probe = find_field(format, is_return ? "__probe_func" : "__probe_ip"),
	};

	if (point == PROBE_EXIT)
		type.from_entry = find_field(format, PROBE_FIELD_FROM_ENTRY);
	for (int i = 0; i < schema->nr_args; i++)
		type.args[i] = find_field(format, schema->arg_names[i]);
	return type;
}

int held_event_types_add(struct held_event_types *types, uint16_t type, const char *name,
			 const char *format)
{
	const char *colon = strchr(name, ':');
	const struct probe_schema *schema;
	struct held_event_type *grown;
	enum probe_point point;

	if (!colon || !format || probe_schema_is_mark(colon + 1) ||
	    probe_schema_parse_event(colon + 1, &schema, &point) ||
	    probe_schema_is_resource(schema) || types->nr == UINT16_MAX)
		return 0;
	if (!types->index)
		types->index = calloc(NR_TYPES, sizeof(*types->index));
	grown = reallocarray(types->types, types->nr + 1, sizeof(*grown));
	if (grown)
		types->types = grown;
	if (!grown || !types->index)
		return -ENOMEM;
	types->types[types->nr++] = make_type(schema, point, format);
	types->index[type] = (uint16_t)types->nr;
	return 0;
}

/* @raw_bytes: from common_type on, which offsets count from. */
static uint64_t load(const struct raw_head *raw, size_t raw_bytes, struct held_field field)
{
	uint64_t value = 0;

	if (field.size_bytes && (size_t)field.offset + field.size_bytes <= raw_bytes)
		memcpy(&value, (const char *)&raw->type + field.offset, field.size_bytes);
	return value;
}

/* A return probe's trampoline is at the beginning of a page (parser/processes/call_pairing.c). */
static uint64_t known_address(uint64_t address)
{
	return address & 0xfff ? address : 0;
}

/* A hash of the innermost frames of the callchain between the fixed fields and @raw. */
static uint64_t site_of(const struct perf_event_header *sample, const struct raw_head *raw,
			uint64_t return_address)
{
	const char *at = (const char *)sample + sizeof(struct plain_head);
	uint64_t words[HELD_SITE_FRAMES], word;
	size_t nr = 0;

	/* The chain's length comes first. */
	for (at += sizeof(word); at + sizeof(word) <= (const char *)raw && nr < HELD_SITE_FRAMES;
	     at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		/* Not marks: the kernel's, and 0 to 2, for a chain that breaks off. */
		if (word > 2 && word < (uint64_t)PERF_CONTEXT_MAX)
			words[nr++] = word;
	}
	return nr ? hash_words(words, nr, 0) : hash_words(&return_address, 1, 0);
}

bool held_event_read(const struct held_event_types *types, const struct perf_event_header *sample,
		     const struct raw_head *raw, struct held_event *ret)
{
	const struct plain_head *head = (const void *)sample;
	const struct held_event_type *type;
	size_t before = (size_t)((const char *)&raw->type - (const char *)sample);
	int size_arg, count_arg, block_arg;

	if (!types->index || !types->index[raw->type] || raw->size > sample->size - before)
		return false;
	type = &types->types[types->index[raw->type] - 1];
	size_arg = type->schema->size_arg;
	count_arg = type->schema->count_arg;
	block_arg = type->schema->block_arg;
	*ret = (struct held_event){
		.time_ns = head->time_ns,
		.type = type,
		.kind = HELD_CALL,
		.pid = (pid_t)head->pid,
		.tid = (pid_t)head->tid,
		.return_address = known_address(load(raw, raw->size, type->caller)),
		.probe = load(raw, raw->size, type->probe) - load(raw, raw->size, type->from_entry),
	};
	if (size_arg >= 0)
		ret->size_bytes = load(raw, raw->size, type->args[size_arg]);
	if (count_arg >= 0)
		ret->size_bytes *= load(raw, raw->size, type->args[count_arg]);
	if (block_arg >= 0)
		ret->block = load(raw, raw->size, type->args[block_arg]);
	ret->result = load(raw, raw->size, type->ret);
	ret->stored = load(raw, raw->size, type->stored);
	if (probe_point_is_return(type->point)) {
		ret->site = site_of(sample, raw, ret->return_address);
		/* An int: the upper half of the register is undefined. */
		if (type->schema->effect == HEAP_ALLOC_TO_PTR)
			ret->result = (uint32_t)ret->result;
	}
	return true;
}

bool held_event_read_task(const struct perf_event_header *record, struct held_event *ret)
{
	const struct perf_disk_task *task = (const void *)record;
	const struct perf_disk_comm *comm = (const void *)record;
	struct record_trailer trailer;

	if (record->size < sizeof(*comm) + sizeof(trailer))
		return false;
	memcpy(&trailer, (const char *)record + record->size - sizeof(trailer), sizeof(trailer));
	*ret = (struct held_event){.time_ns = trailer.time_ns};
	switch (record->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		if (record->size < sizeof(*task) + sizeof(trailer))
			return false;
		ret->kind = record->type == PERF_RECORD_FORK ? HELD_FORK : HELD_THREAD_END;
		ret->pid = (pid_t)task->pid;
		ret->tid = (pid_t)task->tid;
		return record->type == PERF_RECORD_EXIT || task->pid != task->ppid;
	case PERF_RECORD_COMM:
		ret->kind = HELD_EXEC;
		ret->pid = (pid_t)comm->pid;
		return record->misc & PERF_RECORD_MISC_COMM_EXEC;
	default:
		return false;
	}
}
