/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gprof2dot format, JSON as in gprof2dot's schema.json, version 0: the functions, then each
 * stack as indices of functions, innermost first, with its held bytes and blocks.
 */
#include "common/json/json_text.h"
#include "report/formats/formats.h"
#include "report/names/named_stack.h"
#include "report/names/word_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct key {
	const char *name, *module;
};

struct function {
	struct key key;
	uint32_t number;
	UT_hash_handle hh;
};

/* Finds or adds the function of @frame. Returns 1 if it is new, else 0 or -ENOMEM. */
static int number_of(struct function **functions, const struct named_frame *frame,
		     uint32_t *ret_number)
{
	const struct key key = {frame->name, frame->module};
	struct function *function;

	WORD_TABLE_FIND(*functions, &key, function);
	if (function) {
		*ret_number = function->number;
		return 0;
	}
	function = calloc(1, sizeof(*function));
	if (!function)
		return -ENOMEM;
	function->key = key;
	function->number = HASH_COUNT(*functions);
	*ret_number = function->number;
	WORD_TABLE_ADD(*functions, key, function);
	if (!hash_added(function)) {
		free(function);
		return -ENOMEM;
	}
	return 1;
}

static void write_function(FILE *out, const struct named_frame *frame, uint32_t number)
{
	fputs(number ? ",\n" : "\n", out);
	fputs("{\"name\":", out);
	json_write_string(out, frame->name);
	if (frame->module) {
		fputs(",\"module\":", out);
		json_write_string(out, frame->module);
	}
	fputc('}', out);
}

struct writer {
	FILE *out;
	const struct leak_report *report;
	struct named_stack stack;
	struct function *functions;
	bool is_first;
};

/* Writes the functions that earlier stacks do not have. */
static int write_functions(struct writer *writer, const struct leak_site *site)
{
	for (size_t i = 0; i < writer->stack.nr; i++) {
		uint32_t number;
		int is_new = number_of(&writer->functions, &writer->stack.frames[i], &number);

		if (is_new < 0)
			return is_new;
		if (is_new)
			write_function(writer->out, &writer->stack.frames[i], number);
	}
	return 0;
}

static int write_event(struct writer *writer, const struct leak_site *site)
{
	fputs(writer->is_first ? "\n" : ",\n", writer->out);
	writer->is_first = false;
	fputs("{\"callchain\":[", writer->out);
	for (size_t i = 0; i < writer->stack.nr; i++) {
		uint32_t number;
		int err = number_of(&writer->functions, &writer->stack.frames[i], &number);

		if (err < 0)
			return err;
		fprintf(writer->out, "%s%" PRIu32, i ? "," : "", number);
	}
	fprintf(writer->out, "],\"cost\":[%" PRIu64 ",%" PRIu64 "]}", site->bytes, site->blocks);
	return 0;
}

static int for_each_site(struct writer *writer,
			 int (*visit)(struct writer *writer, const struct leak_site *site))
{
	const struct leak_report *report = writer->report;
	int err = 0;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		err = named_stack_load_frames(
			&writer->stack, report->analysis->stacks,
			report->verdicts.sites[report->sites[i].site].site->stack_id);
		if (!err)
			err = visit(writer, &report->sites[i]);
	}
	return err;
}

static int write_report(FILE *out, const struct report_input *input)
{
	struct writer writer = {
		.out = out,
		.report = input->report,
		.stack = {.names = name_pool_create()},
		.is_first = true,
	};
	struct function *function, *next;
	int err = writer.stack.names ? 0 : -ENOMEM;

	fputs("{\"version\":0,\n\"costs\":[{\"description\":\"Held memory\",\"unit\":\"bytes\"},"
	      "{\"description\":\"Held blocks\",\"unit\":\"blocks\"}],\n\"functions\":[",
	      out);
	if (!err)
		err = for_each_site(&writer, write_functions);
	fputs("],\n\"events\":[", out);
	if (!err)
		err = for_each_site(&writer, write_event);
	fputs("]}\n", out);
	HASH_ITER (hh, writer.functions, function, next) {
		HASH_DEL(writer.functions, function);
		free(function);
	}
	name_pool_destroy(writer.stack.names);
	named_stack_deinit(&writer.stack);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format gprof2dot_format = {.name = "gprof2dot", .write = write_report};
