/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The callgrind format, for callgrind_annotate and KCachegrind: the blocks that each function holds
 * itself, by line, and through each function that it calls. The events are bytes and blocks.
 *
 * A stack counts once per function, at the innermost call, so the inclusive cost of a recursive
 * function never exceeds the total.
 */
#include "common/diag.h"
#include "report/formats/formats.h"
#include "report/names/named_stack.h"
#include "report/names/word_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

/* Hashed, so it has no padding. Names are from the pool. */
struct function_key {
	const char *name, *file, *module;
};

struct function {
	struct function_key key;
	uint32_t number;
	struct cost *costs;
	size_t last_stack; /* the last stack counted here, from 1 */
	UT_hash_handle hh;
};

struct cost_key {
	const struct function *caller;
	const struct function *callee; /* NULL: the function itself */
	uint64_t line;
};

/* A line of a function, or a call from that line. */
struct cost {
	struct cost_key key;
	uint64_t bytes, blocks;
	struct cost *next; /* of the same caller */
	UT_hash_handle hh;
};

struct profile {
	struct name_pool *names;
	struct function *functions;
	struct cost *costs;
};

static struct function *function_of(struct profile *profile, const struct named_frame *frame)
{
	const struct function_key key = {frame->name, frame->file, frame->module};
	struct function *function;

	WORD_TABLE_FIND(profile->functions, &key, function);
	if (function)
		return function;
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->key = key;
	function->number = HASH_COUNT(profile->functions) + 1;
	WORD_TABLE_ADD(profile->functions, key, function);
	if (hash_added(function))
		return function;
	free(function);
	return NULL;
}

static int add_cost(struct profile *profile, const struct cost_key *key,
		    const struct leak_site *site, struct function *caller)
{
	struct cost *cost;

	WORD_TABLE_FIND(profile->costs, key, cost);
	if (!cost) {
		cost = calloc(1, sizeof(*cost));
		if (!cost)
			return -ENOMEM;
		cost->key = *key;
		WORD_TABLE_ADD(profile->costs, key, cost);
		if (!hash_added(cost)) {
			free(cost);
			return -ENOMEM;
		}
		LL_PREPEND(caller->costs, cost);
	}
	cost->bytes += site->bytes;
	cost->blocks += site->blocks;
	return 0;
}

static int add_stack(struct profile *profile, const struct named_stack *stack, size_t number,
		     const struct leak_site *site)
{
	const struct function *callee = NULL;

	for (size_t i = 0; i < stack->nr; i++) {
		const struct named_frame *frame = &stack->frames[i];
		struct function *function = function_of(profile, frame);
		struct cost_key key = {
			.caller = function,
			.callee = callee,
			.line = frame->line > 0 ? (uint64_t)frame->line : 0,
		};
		int err = 0;

		if (!function)
			return -ENOMEM;
		if (function->last_stack != number)
			err = add_cost(profile, &key, site, function);
		if (err)
			return err;
		function->last_stack = number;
		callee = function;
	}
	return 0;
}

static int collect(struct profile *profile, const struct leak_report *report)
{
	struct named_stack stack = {.names = profile->names};
	int err = 0;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		err = named_stack_load_frames(
			&stack, report->analysis->stacks,
			report->verdicts.sites[report->sites[i].site].site->stack_id);
		if (!err)
			err = add_stack(profile, &stack, i + 1, &report->sites[i]);
	}
	named_stack_deinit(&stack);
	return err;
}

/* "fn=(12) name". The name is always written, so that no name looks like "(12)". */
static void write_name(FILE *out, const char *what, uint32_t number, const char *name)
{
	fprintf(out, "%s=(%" PRIu32 ") ", what, number);
	diag_print_escaped(out, name && *name ? name : "???", NULL);
	fputc('\n', out);
}

static void write_file(FILE *out, const char *what, const char *file)
{
	/* Number 1 is the unknown file. */
	write_name(out, what, file ? name_pool_number(file) + 2 : 1, file);
}

static void write_function(FILE *out, const struct function *function)
{
	fputc('\n', out);
	write_file(out, "ob", function->key.module);
	write_file(out, "fl", function->key.file);
	write_name(out, "fn", function->number, function->key.name);
	for (const struct cost *cost = function->costs; cost; cost = cost->next) {
		const struct function *callee = cost->key.callee;

		if (callee) {
			write_file(out, "cob", callee->key.module);
			write_file(out, "cfi", callee->key.file);
			write_name(out, "cfn", callee->number, callee->key.name);
			fprintf(out, "calls=%" PRIu64 " 0\n", cost->blocks);
		}
		fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cost->key.line, cost->bytes,
			cost->blocks);
	}
}

static void profile_deinit(struct profile *profile)
{
	struct function *function, *next_function;
	struct cost *cost, *next_cost;

	HASH_ITER (hh, profile->costs, cost, next_cost) {
		HASH_DEL(profile->costs, cost);
		free(cost);
	}
	HASH_ITER (hh, profile->functions, function, next_function) {
		HASH_DEL(profile->functions, function);
		free(function);
	}
	name_pool_destroy(profile->names);
}

/* The totals of the listed blocks, of all kinds, as in the costs. */
static void write_summary(FILE *out, const struct leak_report *report)
{
	uint64_t bytes = 0, blocks = 0;

	for (size_t i = 0; i < report->nr_listed_sites; i++) {
		bytes += report->sites[i].bytes;
		blocks += report->sites[i].blocks;
	}
	fprintf(out, "summary: %" PRIu64 " %" PRIu64 "\n", bytes, blocks);
}

static int write_report(FILE *out, const struct report_input *input)
{
	struct profile profile = {.names = name_pool_create()};
	int err = profile.names ? collect(&profile, input->report) : -ENOMEM;

	if (!err) {
		fputs("# callgrind format\nversion: 1\ncreator: leakparse " LEAKTOOLS_VERSION
		      "\ncmd: memory held\npositions: line\n"
		      "event: Bytes : held bytes\nevent: Blocks : held blocks\n"
		      "events: Bytes Blocks\n",
		      out);
		write_summary(out, input->report);
		for (const struct function *function = profile.functions; function;
		     function = function->hh.next)
			write_function(out, function);
	}
	profile_deinit(&profile);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format callgrind_format = {.name = "callgrind", .write = write_report};
