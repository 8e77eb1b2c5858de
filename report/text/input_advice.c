/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/input_advice.h"

#include "common/quantity.h"
#include "common/scope.h"
#include "parser/verdicts/pairing_audit.h"
#include "report/names/named_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_SITES    50 /* examines the first sites, which users read */
#define SHORT_FRAMES 2	/* the allocation function and its caller, which each event has */

struct frame_counts {
	size_t stacks, short_stacks;
	size_t frames, nameless;     /* in known modules */
	const char *nameless_module; /* one of them */
};

static void count_stack(struct frame_counts *counts, struct stack_store *stacks, uint32_t stack_id)
{
	size_t nr = stack_store_nr_frames(stacks, stack_id);

	counts->stacks++;
	counts->short_stacks += nr <= SHORT_FRAMES;
	/* The probe gives the name of the allocation function. */
	for (size_t i = 1; i < nr; i++) {
		struct stack_frame frame;

		if (stack_store_frame(stacks, stack_id, i, &frame) || !frame.module)
			continue;
		counts->frames++;
		if (frame.function)
			continue;
		counts->nameless++;
		if (!counts->nameless_module)
			counts->nameless_module = frame.module;
	}
}

/* leakrec's largest dump; perf record's is 528 bytes larger. */
#define MAX_DUMP_BYTES 65000
/* The kernel copies no page that the program never touched: a dump ends there. */
#define UNUSED_PAGES                                                                               \
	"; or the dump ended in a large buffer that was not used in full: then --call-graph fp "   \
	"helps, if the code has frame pointers"

const char *input_advice_on_losses(const struct analysis *analysis)
{
	const struct perf_command *command = &analysis->input.command;

	/* Rings do not help who reads along too slowly. */
	if (analysis->left_out && analysis->left_out == analysis->lost)
		return "record with -o FILE, and let leakparse read that";
	if (command->recorder == PERF_RECORDER_PERF)
		return "record with larger rings (-m), or with leakrec";
	return command->drops ? "record without --on-overload drop, or with larger rings (-m)"
			      : "record with larger rings (-m)";
}

const char *input_advice_on_short_stacks(const struct analysis *analysis)
{
	const struct perf_input_stats *input = &analysis->input;
	uint32_t dump_bytes = input->dump_bytes ? input->dump_bytes : input->command.dump_bytes;

	if (dump_bytes && dump_bytes < MAX_DUMP_BYTES)
		return "a file is gone or has no unwind information, or the stack dump was too "
		       "short; use a larger --call-graph dwarf,BYTES";
	if (!dump_bytes && input->command.recorder == PERF_RECORDER_LEAKREC)
		return "a file is gone or has no unwind information; or the stack was larger than "
		       "a dump: --call-graph dwarf,65000 gives the largest" UNUSED_PAGES;
	return "a file is gone or has no unwind information; or the stack was larger than a dump "
	       "can be" UNUSED_PAGES;
}

static char *next_line(struct input_advice *advice)
{
	return advice->lines[advice->nr++];
}

/* Segments before those that are read (docs/segments.md). */
static void tell_removed(const struct analysis *analysis, char *to)
{
	uint64_t started_ns = analysis->segments.started_ns, start_ns = analysis->start_ns;
	double before_s = start_ns > started_ns ? (double)(start_ns - started_ns) / 1e9 : 0;
	uint32_t nr = analysis->segments.first - 1;
	const char *known = analysis_is_in_windows(analysis)
				    ? "blocks of windows that had closed by then are unknown"
				    : "only blocks that were still held afterwards are known";
	uint64_t lost = analysis->segments.lost_before, missing = analysis->segments.without_stack;
	uint64_t late = analysis->segments.out_of_order;
	char only[64] = "", most[64] = "", losses[64] = "", order[128] = "";

	if (analysis->segments.one_of > 1)
		snprintf(only, sizeof(only), "; one in %" PRIu64 " of these is listed",
			 analysis->segments.one_of);
	if (missing)
		snprintf(most, sizeof(most), "; up to %" PRIu64 " more are not", missing);
	if (late)
		snprintf(order, sizeof(order),
			 "; %" PRIu64 " events came out of order in it, so some of these blocks "
			 "may have been freed",
			 late);
	if (lost)
		snprintf(losses, sizeof(losses), "; %" PRIu64 " event%s lost in it", lost,
			 quantity_word(lost, " was", "s were"));
	snprintf(to, INPUT_ADVICE_BYTES,
		 "the first %s of the recording, %" PRIu32 " segment%s, is not here: %s%s%s%s%s",
		 quantity_duration(before_s).text, nr, quantity_plural(nr), known, only, most,
		 losses, order);
}

void input_advice_on_recording(const struct analysis *analysis, struct input_advice *ret)
{
	uint64_t late = analysis->input.out_of_order;

	*ret = (struct input_advice){0};
	if (analysis->segments.first > 1)
		tell_removed(analysis, next_line(ret));
	if (late)
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "%" PRIu64 " record%s out of order in time: a block whose free came "
			 "before its allocation is listed as held",
			 late, quantity_plural(late));
	if (pairing_audit_misses_tasks(analysis))
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "threads and processes that were created meanwhile (%" PRIu64
			 " or more) are not recorded: use perf record without --no-inherit (-i) "
			 "and --per-thread",
			 heap_tracker_stats(analysis->heaps)->created_tasks);
	if (analysis->nr_gaps)
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "pauses of up to %s between files, longer than any within them: events "
			 "are missing if a file is; give all files",
			 quantity_duration((double)analysis->longest_gap_ns / 1e9).text);
}

/*
 * A runtime that generates code: how the names of its processes and modules begin, and how to make
 * it write the names of functions.
 */
static const struct runtime {
	const char *process, *module, *remedy;
} runtimes[] = {
	{"node", "libnode", "run node with --perf-basic-prof"},
	{"python3", "libpython3", "run python3 with -X perf (3.12 and later)"},
	{"java", "libjvm",
	 "run java with -XX:+DumpPerfMapAtExit (17 and later), or with a perf-map agent"},
	{"dotnet", "libcoreclr", "run dotnet with DOTNET_PerfMapEnabled=1 in its environment"},
};

static const struct runtime *find_runtime(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (strncmp(name, runtimes[i].process, strlen(runtimes[i].process)) == 0 ||
		    strncmp(name, runtimes[i].module, strlen(runtimes[i].module)) == 0)
			return &runtimes[i];
	return NULL;
}

struct generated_code {
	size_t stacks;		       /* with functions without names in it */
	bool has_names;		       /* some functions have names: a map was read */
	const struct runtime *runtime; /* NULL: not known */
};

/*
 * Adds a stack to @code. Unless its program is known to generate code, an unknown frame may be the
 * junk at which unwinding ended: then the rest of the stack must be known.
 */
static void add_generated(struct generated_code *code, struct stack_store *stacks,
			  uint32_t stack_id, const char *process)
{
	const struct runtime *runtime = find_runtime(process);
	bool is_unknown = false, is_inside = false, is_whole = true, is_generated;

	for (size_t i = 1; i < stack_store_nr_frames(stacks, stack_id); i++) {
		struct stack_frame frame;
		const char *name;

		if (stack_store_frame(stacks, stack_id, i, &frame))
			continue;
		if (!frame.module) {
			is_unknown |= frame.address > STACK_LAST_MARK;
			is_whole &= frame.address > STACK_LAST_MARK;
			continue;
		}
		is_inside |= is_unknown;
		name = named_stack_basename(frame.module);
		code->has_names |= strncmp(name, "perf-", 5) == 0 && strstr(name, ".map");
		if (!runtime)
			runtime = find_runtime(name);
	}
	is_generated = runtime ? is_unknown : is_inside && is_whole;
	code->stacks += is_generated;
	if (is_generated && !code->runtime)
		code->runtime = runtime;
}

/* Generated code has names only if its runtime is told to write them. */
static void advise_on_generated_code(const struct leak_report *report, struct input_advice *ret)
{
	const struct analysis *analysis = report->analysis;
	struct generated_code code = {0};
	size_t nr = report->nr_listed_sites < MAX_SITES ? report->nr_listed_sites : MAX_SITES;

	for (size_t i = 0; i < nr; i++) {
		const struct site_verdict *verdict = &report->verdicts.sites[report->sites[i].site];
		const struct heap_op *op =
			&report->held[report->verdicts.order[verdict->first]].allocated;

		add_generated(&code, analysis->stacks, verdict->site->stack_id,
			      heap_tracker_process_name(analysis->heaps, op->pid, op->tid));
	}
	if (code.stacks && !code.has_names)
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "%zu of %zu stacks have functions without names in generated code: %s",
			 code.stacks, nr,
			 code.runtime ? code.runtime->remedy
				      : "the program wrote no /tmp/perf-PID.map");
}

/* Where a block that a scan calls lost, or found no holder of, may still be known. */
static void advise_on_unseen(const struct analysis *analysis, struct input_advice *ret)
{
	const struct reach *reach = analysis->reach;
	char others[64] = "";
	size_t nr = 0;
	pid_t pid, next;
	const char *what = reach_unseen(reach, 0, &pid);

	if (!what)
		return;
	while (reach_unseen(reach, nr + 1, &next))
		nr++;
	if (nr)
		snprintf(others, sizeof(others), ", and such of %zu more", nr);
	snprintf(next_line(ret), INPUT_ADVICE_BYTES,
		 "not seen by the scan: %s of process %d%s: a block whose only pointer is in there "
		 "counts as held by nothing",
		 what, (int)pid, others);
}

void input_advice_find(const struct leak_report *report, struct input_advice *ret)
{
	struct frame_counts counts = {0};

	input_advice_on_recording(report->analysis, ret);
	if (report->reach)
		advise_on_unseen(report->analysis, ret);
	for (size_t i = 0; i < report->nr_listed_sites && i < MAX_SITES; i++) {
		const struct site_verdict *verdict = &report->verdicts.sites[report->sites[i].site];

		count_stack(&counts, report->analysis->stacks, verdict->site->stack_id);
	}
	if (counts.stacks && 2 * counts.short_stacks > counts.stacks)
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "%zu of %zu stacks end at the allocator's caller: code without frame "
			 "pointers needs --call-graph dwarf, leakrec's default",
			 counts.short_stacks, counts.stacks);
	if (counts.frames && 2 * counts.nameless > counts.frames)
		snprintf(next_line(ret), INPUT_ADVICE_BYTES,
			 "%zu of %zu frames have no name, as in %s: install its debug symbols, set "
			 "DEBUGINFOD_URLS, or give --debug-dir or --symfs",
			 counts.nameless, counts.frames, counts.nameless_module);
	advise_on_generated_code(report, ret);
}
