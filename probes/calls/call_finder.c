/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/calls/call_finder.h"

#include "probes/allocators/allocator.h"
#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/elf/frame_table.h"
#include "probes/plan/file_sandbox.h"
#include "probes/sites/probe_arch.h"
#include "probes/x86/code_segment.h"

#include "common/diag.h"

#include <errno.h>
#include <string.h>

/* They are searched while leakrec records, and waits. */
#define FUNCTIONS_LIMIT_NS 200000000ULL

struct search {
	const struct mapped_files *files;
	struct call_list *list;
};

/* --- in the process without privileges --- */

/* One file. */
struct searched_file {
	struct elf_image image;
	struct frame_table frames;
	struct allocator allocator;
	char build_id[CALL_BUILD_ID_SIZE];
};

static void find_build_id(struct searched_file *file)
{
	struct debug_symbols_id id;

	if (!debug_symbols_id(&file->image, &id) || id.build_id_size * 2 >= CALL_BUILD_ID_SIZE)
		return;
	for (size_t i = 0; i < id.build_id_size; i++)
		snprintf(file->build_id + 2 * i, 3, "%02x", id.build_id[i]);
}

static bool file_init(struct searched_file *ret, int fd)
{
	*ret = (struct searched_file){0};
	if (elf_image_init(&ret->image, fd))
		return false;
	find_build_id(ret);
	return true;
}

static void file_deinit(struct searched_file *file)
{
	allocator_deinit(&file->allocator);
	frame_table_deinit(&file->frames);
	elf_image_deinit(&file->image);
}

/* An instruction, and the piece of code that has it. Offsets in the file. */
struct found_instruction {
	uint64_t offset, piece;
	bool is_call;
};

/*
 * Finds the instruction that ends at @landing. Returns false if none is sure to do so: unless the
 * whole piece of code decodes, there may be data in it. Behind the last instruction of a piece
 * comes anything.
 */
static bool find_instruction(const struct searched_file *file, uint64_t landing,
			     struct found_instruction *ret)
{
	const struct frame_entry *piece;
	struct code_segment segment;
	struct instruction instruction;
	uint64_t address, at, end;
	bool is_found = false;

	if (!landing || !elf_image_address(&file->image, landing - 1, &address))
		return false;
	piece = frame_table_find(&file->frames, address);
	if (!piece || analysis_limit_is_reached(piece->end - piece->first) ||
	    !code_segment_init(&segment, &file->image, landing - 1))
		return false;
	at = code_segment_offset(&segment, piece->first);
	end = code_segment_offset(&segment, piece->end);
	ret->piece = at;
	while (at < end && code_segment_decode(&segment, at, &instruction)) {
		if (at + instruction.info.length == landing) {
			ret->offset = at;
			ret->is_call = instruction.info.mnemonic == ZYDIS_MNEMONIC_CALL;
		}
		at += instruction.info.length;
		is_found |= at == landing && landing < end;
	}
	return is_found && at == end;
}

/* The function of the schema that the call goes to. */
static bool find_callee(const struct searched_file *file, struct call_site *site)
{
	const struct allocator_function *function;
	struct probe_symbol found;

	if (*site->target.symbol && probe_symbol_find(site->target.symbol, NULL, &found)) {
		site->schema = found.schema;
		site->first_arg = found.first_arg;
		return true;
	}
	function = site->target.offset ? allocator_find_code(&file->allocator, site->target.offset)
				       : NULL;
	if (!function || function->code.offset != site->target.offset)
		return false;
	site->schema = function->schema;
	site->first_arg = function->first_arg;
	return true;
}

static bool find_site(const struct searched_file *file, uint64_t landing, struct call_site *ret)
{
	struct found_instruction call = {0};

	*ret = (struct call_site){0};
	if (!find_instruction(file, landing, &call) ||
	    !code_target_of_call(&file->image, call.offset, &ret->target) ||
	    !find_callee(file, ret))
		return false;
	probe_arch_describe_at(&file->image, call.offset, &ret->call);
	probe_arch_describe_at(&file->image, landing, &ret->landing);
	return true;
}

static void put_site(FILE *to, const struct call_site *site)
{
	message_put_string(to, site->schema->function);
	message_put_number(to, (uint64_t)site->first_arg);
	message_put_number(to, site->target.size_bytes);
	message_put_number(to, (uint64_t)site->target.distance);
	message_put_number(to, (uint64_t)site->target.pointer_distance);
	message_put_number(to, site->call.class);
	message_put_string(to, site->call.text);
	message_put_number(to, site->landing.class);
	message_put_string(to, site->landing.text);
}

static void analyse(void *context, size_t nr, FILE *reply)
{
	const struct search *search = context;
	struct searched_file file;
	struct call_site site;
	bool is_elf, is_read = false;

	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	is_elf = file_init(&file, search->files->files[nr].fd);
	for (size_t i = 0; i < search->list->nr_frames; i++) {
		const struct call_frame *frame = &search->list->frames[i];
		bool is_here = is_elf && frame->is_wanted && *frame->build_id &&
			       strcmp(frame->build_id, file.build_id) == 0;

		if (is_here && !is_read) {
			is_read = true;
			if (frame_table_init(&file.frames, &file.image))
				frame_table_deinit(&file.frames);
			allocator_init(&file.allocator, &file.image, true);
		}
		is_here = is_here && find_site(&file, frame->landing, &site) &&
			  !analysis_limit_is_reached(0);
		message_put_number(reply, is_here);
		if (is_here)
			put_site(reply, &site);
	}
	if (is_elf)
		file_deinit(&file);
	analysis_limit_end();
}

struct function_search {
	const struct mapped_files *files;
	struct call_function *functions;
	size_t nr;
};

static void analyse_functions(void *context, size_t nr, FILE *reply)
{
	const struct function_search *search = context;
	struct searched_file file;
	bool is_read = false, is_elf = false;

	analysis_limit_begin(FUNCTIONS_LIMIT_NS);
	for (size_t i = 0; i < search->nr; i++) {
		const struct call_function *function = &search->functions[i];
		struct found_instruction found = {0};
		struct placement_instruction first;

		if (function->file != nr)
			continue;
		if (!is_read) {
			is_read = true;
			is_elf = file_init(&file, search->files->files[nr].fd);
			if (is_elf && frame_table_init(&file.frames, &file.image))
				frame_table_deinit(&file.frames);
		}
		if (!is_elf || !find_instruction(&file, function->landing, &found) ||
		    !found.is_call || analysis_limit_is_reached(0)) {
			message_put_number(reply, 0);
			continue;
		}
		probe_arch_describe_at(&file.image, found.piece, &first);
		message_put_number(reply, found.piece);
		message_put_number(reply, first.class);
	}
	if (is_elf)
		file_deinit(&file);
	analysis_limit_end();
}

/* --- in the process that waits --- */

static int take_functions(void *context, size_t nr, struct message_reader *reader)
{
	const struct function_search *search = context;

	for (size_t i = 0; i < search->nr && !reader->is_bad; i++) {
		struct call_function *function = &search->functions[i];
		uint64_t begin;

		if (function->file != nr)
			continue;
		begin = (uint64_t)message_get_number(reader, 0, (int64_t)function->landing);
		if (!begin)
			continue;
		function->first.class =
			(enum placement_class)message_get_number(reader, 0, PLACEMENT_UNKNOWN);
		if (!reader->is_bad)
			function->begin = begin;
	}
	return 0;
}

/* What is not counted is no news. */
static void leave_out_functions(void *context, size_t nr)
{
	(void)context;
	(void)nr;
}

int call_finder_find_functions(const struct mapped_files *files, struct call_function *functions,
			       size_t nr)
{
	struct function_search search = {files, functions, nr};
	const struct file_sandbox sandbox = {
		.files = files->files,
		.nr = files->nr,
		.cpu_limit_ns = FUNCTIONS_LIMIT_NS,
		.analyse = analyse_functions,
		.take = take_functions,
		.leave_out = leave_out_functions,
		.context = &search,
	};

	return file_sandbox_run(&sandbox);
}

static void get_instruction(struct message_reader *reader, struct placement_instruction *ret)
{
	ret->class = (enum placement_class)message_get_number(reader, 0, PLACEMENT_UNKNOWN);
	snprintf(ret->text, sizeof(ret->text), "%s",
		 message_get_string(reader, sizeof(ret->text) - 1, NULL));
}

static void get_site(struct message_reader *reader, struct call_site *ret)
{
	const char *function = message_get_string(reader, PROBE_SYMBOL_MAX - 1, NULL);

	ret->schema = probe_schema_find(function);
	reader->is_bad |= !ret->schema;
	ret->first_arg = (int)message_get_number(reader, 0, PROBE_MAX_ARGS);
	ret->target.size_bytes =
		(unsigned int)message_get_number(reader, 1, PLACEMENT_MAX_INSTRUCTION_BYTES);
	ret->target.distance = message_get_number(reader, INT32_MIN, INT64_C(1) << 32);
	ret->target.pointer_distance = message_get_number(reader, INT32_MIN, INT64_C(1) << 32);
	get_instruction(reader, &ret->call);
	get_instruction(reader, &ret->landing);
}

static int take(void *context, size_t nr, struct message_reader *reader)
{
	const struct search *search = context;

	for (size_t i = 0; i < search->list->nr_frames && !reader->is_bad; i++) {
		struct call_frame *frame = &search->list->frames[i];
		struct call_site site = {.file = nr};

		if (!message_get_number(reader, false, true))
			continue;
		get_site(reader, &site);
		if (!reader->is_bad && frame->landing > site.target.size_bytes &&
		    frame->landing < (uint64_t)search->files->files[nr].stat.st_size)
			frame->site = site;
	}
	return 0;
}

static void leave_out(void *context, size_t nr)
{
	const struct search *search = context;

	file_sandbox_tell_left_out(&search->files->files[nr], "its calls are not probed");
}

int call_finder_run(const struct mapped_files *files, struct call_list *list)
{
	struct search search = {files, list};
	const struct file_sandbox sandbox = {
		.files = files->files,
		.nr = files->nr,
		.cpu_limit_ns = ANALYSIS_LIMIT_NS,
		.analyse = analyse,
		.take = take,
		.leave_out = leave_out,
		.context = &search,
	};

	return file_sandbox_run(&sandbox);
}
