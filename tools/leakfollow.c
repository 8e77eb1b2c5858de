/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakfollow: shows every operation on blocks of one size, as it happened. */
#include "common/diag.h"
#include "common/elf/own_mounts.h"
#include "common/options.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "common/size_range.h"
#include "report/text/leak_words.h"
#include "report/text/leaks_text.h"
#include "report/text/resource_report.h"
#include "tools/recording_services.h"
#include "tools/recording_warnings.h"
#include "tools/separation.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NEAREST 2 /* on each side */
/* Of the recording, so that a reader of a live one need not wait for a full buffer. */
#define FLUSH_EVERY_NS UINT64_C(100000000)

struct nearest_size {
	uint64_t size_bytes, nr_blocks;
};

/* Of memory, or of one kind of other resources. */
struct follow_counts {
	const struct resource_kind *kind;
	uint64_t entered, exited;
};

struct follow {
	const char **inputs; /* of one recording, in its order */
	size_t nr_inputs;
	const char *output;
	struct stack_store_options stacks;
	struct size_range range;
	bool has_range;
	const char *kind;
	struct analysis analysis;
	int64_t refcount;				     /* blocks of that size held now */
	struct follow_counts counts[RESOURCE_MAX_KINDS + 1]; /* by the kind's number; 0: memory */
	int write_errno;				     /* the first one */
	/* Sizes that were recorded below and above @range, the nearest first; 0 blocks: none. */
	struct nearest_size below[MAX_NEAREST], above[MAX_NEAREST];
};

static int parse_input(void *context, const struct option_row *row, const char *text)
{
	struct follow *follow = context;

	follow->inputs[follow->nr_inputs++] = text;
	return 0;
}

#define FIELD(field) OPTION_FIELD(struct follow, field)

static const struct option_row rows[] = {
	{"size", 's', OPTION_SIZE_RANGE, "SIZE|MIN..MAX",
	 "the blocks' size (3072, 3k), or a range with both ends included", FIELD(range)},
	{"kind", 0, OPTION_TEXT, "KIND",
	 "resources of that kind (docs/resources.md), or memory; --size may then be left out",
	 FIELD(kind)},
	{"input", 'i', OPTION_PARSED, "FILE",
	 "read FILE, not standard input; several are one session's, in order", .parse = parse_input,
	 .completes = OPTION_COMPLETES_FILES},
	{"output", 'o', OPTION_TEXT, "FILE", "write FILE, not standard output", FIELD(output),
	 .completes = OPTION_COMPLETES_FILES},
	{"symfs", 0, OPTION_DIRECTORY, "DIR", "look for the recorded files below DIR",
	 FIELD(stacks.symfs), .completes = OPTION_COMPLETES_DIRECTORIES},
	{"debug-dir", 0, OPTION_DIRECTORY, "DIR",
	 "look for separate debug files below DIR, before /usr/lib/debug", FIELD(stacks.debug_dir),
	 .completes = OPTION_COMPLETES_DIRECTORIES},
};

static const struct option_table table = {
	.tool = "leakfollow",
	.synopsis = "leakfollow --size SIZE|MIN..MAX [OPTION...] < perf.data\n"
		    "leakfollow --size SIZE|MIN..MAX [OPTION...] FILE...\n"
		    "leakfollow --kind KIND [OPTION...] FILE...",
	.about = "Reads a recording by leakrec or perf record and prints every operation on blocks "
		 "of that size, in time order, with its stack: \"enter\" when a block begins to be "
		 "held, \"exit\" when it ends, and the number of such blocks held after it.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* Returns what options_parse() does. */
static int parse_options(int argc, char **argv, struct follow *follow)
{
	struct option_result result;
	int err;

	follow->inputs = calloc((size_t)argc, sizeof(*follow->inputs));
	if (!follow->inputs)
		return -ENOMEM;
	err = options_parse(&table, argc, argv, follow, &result);
	if (err)
		return err;
	for (size_t i = 0; i < result.nr_operands; i++)
		follow->inputs[follow->nr_inputs++] = result.operands[i];
	follow->has_range = options_has(&table, &result, "size");
	if (!follow->has_range && !follow->kind) {
		diag_error("give the size to follow: --size SIZE or --size MIN..MAX; or --kind");
		return -EINVAL;
	}
	return 0;
}

/* A size that is pushed out is never near again, so what stays is counted from its first block. */
static void count_nearest(struct nearest_size *list, uint64_t size_bytes, bool is_below)
{
	size_t i = 0;

	while (i < MAX_NEAREST && list[i].nr_blocks &&
	       (is_below ? size_bytes < list[i].size_bytes : size_bytes > list[i].size_bytes))
		i++;
	if (i == MAX_NEAREST)
		return;
	if (!list[i].nr_blocks || list[i].size_bytes != size_bytes) {
		memmove(&list[i + 1], &list[i], (MAX_NEAREST - 1 - i) * sizeof(*list));
		list[i] = (struct nearest_size){.size_bytes = size_bytes};
	}
	list[i].nr_blocks++;
}

/* NULL: memory. */
static const struct resource_kind *kind_of(const struct heap_block *block)
{
	const struct resource_call *call = resource_call_of(block->allocated.schema);

	return call ? call->kind : NULL;
}

/* Whether it is of a size to follow. Others are counted, for the case that there is none. */
static bool is_followed(struct follow *follow, const struct heap_change *change)
{
	uint64_t size_bytes = change->block.size_bytes;

	if (!follow->has_range)
		return true;
	if (!change->block.size_known)
		return false;
	if (size_range_has(&follow->range, size_bytes))
		return true;
	/* A descriptor, for example, has none. */
	if (change->enters && (size_bytes || !kind_of(&change->block))) {
		bool is_below = size_bytes < follow->range.min_bytes;

		count_nearest(is_below ? follow->below : follow->above, size_bytes, is_below);
	}
	return false;
}

static void on_change(void *context, const struct heap_change *change)
{
	struct follow *follow = context;
	const struct resource_kind *kind = kind_of(&change->block);
	struct follow_counts *counts = &follow->counts[kind ? kind->number : 0];

	if (!is_followed(follow, change))
		return;
	follow->refcount += change->enters ? 1 : -1;
	counts->kind = kind;
	counts->entered += change->enters;
	counts->exited += !change->enters;
	errno = 0;
	printf("%s %" PRId64 " ", change->enters ? "enter" : "exit", follow->refcount);
	leaks_write_columns(stdout, &follow->analysis, &change->block, &change->op);
	putchar('\n');
	leaks_write_stack(stdout, &follow->analysis, change->op.stack_id, 0);
	diag_keep_output_error(stdout, &follow->write_errno);
}

/* Returns whether the operations can no longer be written: their reader has gone, perhaps. */
static int flush_operations(void *context)
{
	struct follow *follow = context;

	errno = 0;
	fflush(stdout);
	diag_keep_output_error(stdout, &follow->write_errno);
	/* The next operation may be far off, and leakrec slows its target for nobody. */
	if (!follow->write_errno && diag_output_is_left(stdout))
		follow->write_errno = EPIPE;
	return follow->write_errno != 0;
}

/* "; the nearest sizes are 3056 (12 blocks), 3104 (1 block)" */
static void write_nearest(FILE *out, const struct follow *follow)
{
	const char *separator = "; the nearest sizes are ";

	for (size_t i = 0; i < 2 * MAX_NEAREST; i++) {
		/* In ascending order. */
		const struct nearest_size *size = i < MAX_NEAREST
							  ? &follow->below[MAX_NEAREST - 1 - i]
							  : &follow->above[i - MAX_NEAREST];

		if (!size->nr_blocks)
			continue;
		fprintf(out, "%s%" PRIu64 " (%" PRIu64 " block%s)", separator, size->size_bytes,
			size->nr_blocks, quantity_plural(size->nr_blocks));
		separator = ", ";
	}
}

/* Says that nothing of that size was recorded, and what was. */
static void tell_nearest(const struct follow *follow)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	size_range_write(out, &follow->range);
	fputs(" bytes was recorded", out);
	write_nearest(out, follow);
	if (fclose(out) == 0)
		diag_note("no block of %s", text);
}

/* "7 fds entered, 5 exited, 2 still held" */
static void write_counts(FILE *out, const struct follow_counts *counts)
{
	leak_words_number(out, counts->kind, counts->entered);
	fprintf(out, " entered, %" PRIu64 " exited, %" PRId64 " still held", counts->exited,
		(int64_t)(counts->entered - counts->exited));
}

/* Of all kinds that were followed. Returns whether there were any. */
static bool tell_followed(const struct follow *follow)
{
	_cleanup_free_ char *text = NULL;
	size_t len, nr = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(follow->counts); i++) {
		if (!follow->counts[i].entered && !follow->counts[i].exited)
			continue;
		fputs(nr++ ? "; " : "", out);
		write_counts(out, &follow->counts[i]);
	}
	if (fclose(out) == 0 && nr)
		diag_note("%s", text);
	return nr > 0;
}

static void tell_counts(const struct follow *follow)
{
	bool has_any = tell_followed(follow);

	if (!has_any && follow->has_range)
		tell_nearest(follow);
	else if (!has_any)
		diag_note("no operation of that kind was recorded");
	resource_report_check_kind(follow->analysis.heaps, follow->kind);
	recording_warnings_print(&follow->analysis,
				 "operations between them are missing, and a block that is lost "
				 "sight of ends by \"window\"");
}

/* Returns the tool's exit status. */
static int run(struct follow *follow)
{
	struct heap_observer observer = {
		.context = follow,
		.on_change = on_change,
		.kind = follow->kind,
	};
	struct progress progress = {0};
	const struct recording_services services = {
		.inputs = follow->inputs,
		.nr_inputs = follow->nr_inputs,
		.symfs = follow->stacks.symfs,
	};
	const struct separation separation = {
		.output = follow->output,
		.add_services = recording_services_add,
		.context = &services,
	};
	int err;

	own_mounts_note();
	err = separation_begin(&separation);
	if (!err)
		err = analysis_init(&follow->analysis, &follow->stacks, &observer);
	follow->analysis.ticks = (struct analysis_ticks){
		.every_ns = FLUSH_EVERY_NS,
		.on_tick = flush_operations,
		.context = follow,
	};
	/* Operations are written meanwhile, perhaps to the same terminal. */
	follow->analysis.progress = isatty(STDOUT_FILENO) ? NULL : &progress;
	if (!err)
		err = follow->output ? separation_redirect(follow->output) : 0;
	if (!err) {
		puts("# columns: enter|exit COUNT SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK");
		err = analysis_read(&follow->analysis, follow->inputs, follow->nr_inputs);
	}
	if (flush_operations(follow)) {
		diag_output_failed("the operations", follow->write_errno);
		err = -EIO;
	}
	if (!err)
		tell_counts(follow);
	if (!err && follow->analysis.input.truncated)
		err = -ENODATA;
	analysis_deinit(&follow->analysis);
	separation_end();
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct follow follow = {.stacks.ask_servers = true};
	int err, status;

	diag_begin("leakfollow");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	err = parse_options(argc, argv, &follow);
	status = err ? options_exit_status(err) : run(&follow);
	free(follow.inputs);
	return status;
}
