/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leaks_writer.h"

#include "common/diag.h"
#include "common/scope.h"
#include "parser/verdicts/leak_processes.h"
#include "report/text/cause_frames.h"
#include "report/text/cause_holder.h"
#include "report/text/history_writer.h"
#include "report/text/leak_words.h"
#include "report/text/leaks_text.h"
#include "report/text/resource_report.h"
#include "report/text/stack_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define PROGRESS_EVERY 1024 /* blocks; the clock costs as much as a few */

struct writer {
	FILE *out;
	const struct leak_report *report;
	struct stack_lines stacks;
	struct leak_process *processes; /* those with listed blocks, by number */
	size_t nr_processes;
	size_t max;	     /* processes, causes, stacks */
	bool is_short;	     /* without threads, unexpected operations and blocks */
	size_t *causes;	     /* the numbers of verdicts.causes in the text; 0: it is one stack */
	uint64_t nr_written; /* blocks */
};

/* The names of anomalies in `unexpected` lines and in the summary. */
static const struct {
	const char *kind;
	const char *counter;
} anomaly_names[ANOMALY_NR_KINDS] = {
	[ANOMALY_FREE_UNKNOWN] = {"free-unknown", "free_unknown"},
	[ANOMALY_DOUBLE_FREE] = {"double-free", "double_free"},
	[ANOMALY_STILL_HELD] = {"still-held", "still_held"},
	[ANOMALY_REALLOC_UNKNOWN] = {"realloc-unknown", "realloc_unknown"},
	[ANOMALY_ALLOC_FAILED] = {"alloc-failed", "alloc_failed"},
	[ANOMALY_MISMATCH] = {"mismatch", "mismatch"},
};

/* "start-up" becomes "start_up". */
static void write_key(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == '-' ? '_' : *name, out);
}

/* Options that select blocks apply to held blocks and anomalies, not to the other counters. */
static void write_summary(FILE *out, const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct leaks_options *options = report->options;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	size_t nr_windows;
	pid_t pid;

	loss_windows_list(analysis->loss_windows, &nr_windows);
	fputs("# summary", out);
	if (options->size) {
		fputs(" size=", out);
		size_range_write(out, options->size);
	}
	if (analysis->input.command.partial)
		fputs(" filtered=1", out);
	if (analysis->input.command.has_sizes) {
		fputs(" recorded_size=", out);
		size_range_write(out, &analysis->input.command.sizes);
	}
	fprintf(out,
		" events=%" PRIu64 " allocations=%" PRIu64 " frees=%" PRIu64 " held_blocks=%" PRIu64
		" held_bytes=%" PRIu64 " lost=%" PRIu64 " unwind_failures=%" PRIu64,
		stats->events, stats->allocations, stats->frees, report->held_blocks,
		report->held_bytes, analysis->lost, analysis_unwind_failures(analysis));
	fprintf(out,
		" allocated_bytes=%" PRIu64 " freed_bytes=%" PRIu64 " null_frees=%" PRIu64
		" thread_exit_frees=%" PRIu64,
		stats->allocated_bytes, stats->freed_bytes, stats->null_frees,
		stats->thread_exit_frees);
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		fprintf(out, " %s=%" PRIu64, anomaly_names[i].counter, report->anomalies[i]);
	fprintf(out,
		" unpaired_entries=%" PRIu64 " unpaired_returns=%" PRIu64
		" unlocated_blocks=%" PRIu64 " dropped_by_exec=%" PRIu64 " truncated=%d",
		stats->entries_without_return, stats->returns_without_entry,
		stats->blocks_unlocated, stats->blocks_dropped_by_exec, analysis->input.truncated);
	fprintf(out, " loss_windows=%zu lost_any_time=%" PRIu64, nr_windows,
		analysis->lost_any_time);
	fprintf(out,
		" firm_blocks=%" PRIu64 " stacks=%zu suppressed_blocks=%" PRIu64
		" suppressed_bytes=%" PRIu64,
		report->firm_blocks, report->nr_sites, report->suppressed_blocks,
		report->suppressed_bytes);
	if (analysis->may_miss)
		fputs(" lost_more=1", out);
	if (analysis->unguarded_tasks)
		fprintf(out, " unguarded_tasks=%" PRIu64, analysis->unguarded_tasks);
	if (stats->own_mappings)
		fprintf(out, " own_mappings=%" PRIu64 " own_mapped_bytes=%" PRIu64,
			stats->own_mappings, stats->own_mapped_bytes);
	if (stats->forgetful_children)
		fprintf(out, " forgetful_children=%" PRIu64, stats->forgetful_children);
	for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++) {
		fputc(' ', out);
		write_key(out, verdict_name(verdict));
		fprintf(out, "_blocks=%" PRIu64, report->blocks_of[verdict]);
	}
	if (leak_report_is_narrowed(report))
		fputs(" narrowed=1", out);
	leaks_write_observed(out, report);
	if (report->reach && reach_unseen(analysis->reach, 0, &pid))
		fputs(" not_seen=1", out);
	fputs(" start=", out);
	leaks_write_time(out, analysis->start_ns);
	fputs(" end=", out);
	leaks_write_time(out, analysis->end_ns);
	fputc('\n', out);
}

/* Returns 0 or -ENOMEM. */
static int write_processes(struct writer *writer)
{
	const struct analysis *analysis = writer->report->analysis;
	FILE *out = writer->out;
	int err = leak_processes_find(writer->report, &writer->processes, &writer->nr_processes);

	if (err)
		return err;
	fputs("# columns: process PID NAME BLOCKS BYTES KEY=VALUE...\n", out);
	for (size_t i = 0; i < writer->nr_processes && i < writer->max; i++) {
		const struct leak_process *process = &writer->processes[i];
		const char *name =
			heap_tracker_process_name(analysis->heaps, process->pid, process->tid);

		fprintf(out, "process %d ", process->pid);
		diag_print_escaped(out, *name ? name : "?", " \t");
		fprintf(out, " %" PRIu64 " %" PRIu64, process->blocks, process->bytes);
		if (process->end_ns != analysis->end_ns) {
			fputs(" end=", out);
			leaks_write_time(out, process->end_ns);
		}
		fputc('\n', out);
	}
	leak_processes_sort(writer->processes, writer->nr_processes);
	return 0;
}

/* The lines of blocks have the numbers of threads. Returns 0 or -ENOMEM. */
static int write_threads(FILE *out, const struct leak_report *report)
{
	_cleanup_free_ struct leak_process *threads = NULL;
	size_t nr;
	int err = leak_threads_find(report, &threads, &nr);

	if (err)
		return err;
	fputs("# columns: thread TID PID COMM\n", out);
	for (size_t i = 0; i < nr; i++) {
		const char *comm = heap_tracker_comm_of(report->analysis->heaps, threads[i].tid);

		fprintf(out, "thread %d %d ", threads[i].tid, threads[i].pid);
		diag_print_escaped(out, *comm ? comm : "?", " \t");
		fputc('\n', out);
	}
	return 0;
}

/* An operation, with all columns. */
static void write_operation(struct stack_lines *lines, const char *what,
			    const struct heap_block *block, const struct heap_op *op)
{
	stack_lines_define(lines, op->stack_id, op->schema->function);
	fprintf(lines->out, "%s ", what);
	leaks_write_columns(lines->out, lines->analysis, block, op);
	fprintf(lines->out, " %s", stack_lines_caller(lines, op->stack_id));
}

/* An earlier operation on the block: its allocation or first release. */
static void write_related(struct stack_lines *lines, const char *what,
			  const struct heap_block *block, const struct heap_op *op)
{
	write_operation(lines, what, block, op);
	fputc('\n', lines->out);
}

/* " kind=file" for a resource; nothing for memory. */
static void write_kind(FILE *out, const struct heap_op *op)
{
	const struct resource_call *call = resource_call_of(op->schema);

	if (call)
		fprintf(out, " kind=%s", call->kind->name);
}

static void write_anomaly(struct stack_lines *lines, const struct heap_anomaly *anomaly)
{
	struct heap_block block = anomaly->block;
	char what[64];

	block.address = anomaly->address;
	snprintf(what, sizeof(what), "unexpected %s", anomaly_names[anomaly->kind].kind);
	write_operation(lines, what, &block, &anomaly->op);
	write_kind(lines->out, &anomaly->op);
	fputc('\n', lines->out);
	if (anomaly->kind == ANOMALY_DOUBLE_FREE)
		write_related(lines, "freed-before", &block, &anomaly->released);
	if ((anomaly->kind == ANOMALY_DOUBLE_FREE || anomaly->kind == ANOMALY_STILL_HELD ||
	     anomaly->kind == ANOMALY_MISMATCH) &&
	    block.allocated.schema)
		write_related(lines, "allocated", &block, &block.allocated);
}

static void write_anomalies(struct stack_lines *lines, const struct leak_report *report)
{
	const struct heap_tracker *heaps = report->analysis->heaps;
	const struct heap_anomaly *anomalies;
	FILE *out = lines->out;
	size_t nr;

	anomalies = heap_tracker_anomalies(heaps, &nr);
	fputs("# columns: unexpected KIND SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK "
	      "CALLER\n",
	      out);
	for (size_t i = 0; i < nr && !ferror(out); i++)
		if ((anomalies[i].kind != ANOMALY_FREE_UNKNOWN || report->options->list_unknown) &&
		    leak_report_wants(report, &anomalies[i].block, &anomalies[i].op))
			write_anomaly(lines, &anomalies[i]);
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (heap_tracker_unlisted(heaps)[i] &&
		    (i != ANOMALY_FREE_UNKNOWN || report->options->list_unknown))
			fprintf(out, "# not listed: %" PRIu64 " more %s\n",
				heap_tracker_unlisted(heaps)[i], anomaly_names[i].kind);
}

/* The comment before the line of a stack or of a cause, for people. */
static void write_verdict_comment(FILE *out, const struct resource_kind *kind,
				  const struct site_verdict *verdict, uint64_t blocks,
				  uint64_t bytes)
{
	fprintf(out, "%s, ", verdict_name(verdict->verdict));
	leak_words_certainty(out, verdict->doubts);
	fputs(": ", out);
	leak_words_held(out, kind, blocks, bytes);
	if (verdict->has_rate) {
		fputs(", ", out);
		leak_words_rate(out, kind, &verdict->rate);
	}
	fputs("; ", out);
	leak_words_lifetimes(out, kind, verdict);
	fputc('\n', out);
}

static void write_site_statistics(FILE *out, const struct analysis *analysis,
				  const struct site_verdict *verdict, uint64_t firm_blocks)
{
	const struct site *site = verdict->site;

	fprintf(out,
		" allocations=%" PRIu64 " frees=%" PRIu64 " temporaries=%" PRIu64
		" allocated_bytes=%" PRIu64,
		site->allocations, site->frees, site->temporaries, site->allocated_bytes);
	if (!verdict->in_windows)
		fprintf(out, " peak_blocks=%" PRIu64 " peak_bytes=%" PRIu64, site->peak_blocks,
			site->peak_bytes);
	fputs(" first=", out);
	leaks_write_time(out, site->first_ns);
	fputs(" last=", out);
	leaks_write_time(out, site->last_ns);
	fprintf(out,
		" oldest=%.9g firm_blocks=%" PRIu64 " suspect_blocks=%" PRIu64
		" suspect_bytes=%" PRIu64,
		verdict->oldest_s, firm_blocks, verdict->suspect_blocks, verdict->suspect_bytes);
	if (verdict->median_s >= 0)
		fprintf(out, " median=%.3g p99=%.3g", verdict->median_s, verdict->p99_s);
	leaks_write_rate(out, verdict);
	if (verdict->exited)
		fputs(" exited=1", out);
}

/* The lowest value of its blocks; -1: not known. */
static double ordinary_share(const struct leak_report *report, const struct site_verdict *verdict)
{
	double least = -1;

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		double share = report->verdicts.blocks[report->verdicts.order[verdict->first + i]]
				       .ordinary;

		if (share >= 0 && (least < 0 || share < least))
			least = share;
	}
	return least;
}

/* A cause of several stacks, and the frames that they have in common. */
static int write_cause(struct writer *writer, const struct leak_cause *cause, size_t number)
{
	const struct leak_report *report = writer->report;
	const struct site_verdict *verdict = &report->verdicts.causes[cause->cause].verdict;
	const struct leak_site *site = &report->sites_by_cause[cause->first];
	struct cause_frames frames = {
		.stack = {.names = writer->stacks.stack.names, .wrappers = &report->wrappers}};
	_cleanup_free_ char *caller = NULL;
	FILE *out = writer->out;
	int err = cause_frames_load(&frames, report, cause, site);

	if (!err)
		caller = stack_lines_name(&frames.stack, frames.first);
	if (caller) {
		fprintf(out, "# cause %zu, %zu stacks: ", number, cause->nr);
		write_verdict_comment(out, leak_report_kind_of(report, site), verdict,
				      cause->blocks, cause->bytes);
		fprintf(out, "cause %zu %s ", number, verdict_name(verdict->verdict));
		leak_words_certainty(out, verdict->doubts);
		fprintf(out, " %" PRIu64 " %" PRIu64 " %zu %s", cause->blocks, cause->bytes,
			cause->nr, caller);
		leaks_write_rate(out, verdict);
		leaks_write_estimate(out, verdict, &cause->estimate);
		cause_holder_write_key(out, cause_holder_find(report, site, cause->nr).holder);
		fputc('\n', out);
		leaks_write_stack(out, report->analysis,
				  report->verdicts.sites[site->site].site->stack_id, frames.first);
	}
	named_stack_deinit(&frames.stack);
	return caller ? err : -ENOMEM;
}

/* Returns 0 or -ENOMEM. */
static int write_causes(struct writer *writer)
{
	const struct leak_report *report = writer->report;
	int err = 0;

	writer->causes = calloc(report->verdicts.nr_causes + 1, sizeof(*writer->causes));
	if (!writer->causes)
		return -ENOMEM;
	/* With --limit, the stacks of a cause may be missing. */
	if (report->nr_listed_sites < report->nr_sites)
		return 0;
	fputs("# columns: cause NR VERDICT CERTAINTY BLOCKS BYTES STACKS CALLER KEY=VALUE...\n",
	      writer->out);
	for (size_t i = 0; i < report->nr_causes && i < writer->max && !err && !ferror(writer->out);
	     i++) {
		if (report->causes[i].nr < 2)
			continue;
		writer->causes[report->causes[i].cause] = i + 1;
		err = write_cause(writer, &report->causes[i], i + 1);
	}
	return err;
}

static void write_site(struct writer *writer, const struct leak_site *site, size_t rank)
{
	const struct leak_report *report = writer->report;
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	const struct heap_op *op = &report->held[report->verdicts.order[verdict->first]].allocated;
	double ordinary = ordinary_share(report, verdict);
	uint32_t stack_id = verdict->site->stack_id;
	FILE *out = writer->out;

	fprintf(out, "# %zu. ", rank);
	write_verdict_comment(out, leak_report_kind_of(report, site), verdict, site->blocks,
			      site->bytes);
	stack_lines_define(&writer->stacks, stack_id, op->schema->function);
	fprintf(out, "stack %zu %s ", rank, verdict_name(verdict->verdict));
	leak_words_certainty(out, verdict->doubts);
	fprintf(out, " %" PRIu64 " %" PRIu64 " %" PRIu32 " %s %s", site->blocks, site->bytes,
		stack_id, op->schema->function, stack_lines_caller(&writer->stacks, stack_id));
	write_site_statistics(out, report->analysis, verdict, site->firm_blocks);
	leaks_write_estimate(out, verdict, &site->estimate);
	if (ordinary >= 0)
		fprintf(out, " ordinary=%.2g", ordinary);
	write_kind(out, op);
	leak_words_reach_keys(out, report, &site->reach);
	cause_holder_write_key(out, cause_holder_find(report, site, 1).holder);
	if (writer->causes[verdict->cause])
		fprintf(out, " cause=%zu", writer->causes[verdict->cause]);
	fputc('\n', out);
}

static void write_sites(struct writer *writer)
{
	const struct leak_report *report = writer->report;

	fputs("# columns: stack RANK VERDICT CERTAINTY BLOCKS BYTES STACK FUNCTION CALLER "
	      "KEY=VALUE...\n",
	      writer->out);
	for (size_t i = 0; i < report->nr_listed_sites && i < writer->max && !ferror(writer->out);
	     i++)
		write_site(writer, &report->sites[i], i + 1);
}

/* Readers assume the value that most blocks have, so only others are written. */
static void write_exceptions(struct writer *writer, size_t index)
{
	const struct leak_report *report = writer->report;
	const struct heap_op *op = &report->held[index].allocated;
	const struct leak_process *process =
		leak_processes_at(writer->processes, writer->nr_processes, op->pid);
	uint64_t age_ns = leak_report_age_ns(report, &report->held[index]);
	unsigned int doubts = report->verdicts.blocks[index].doubts;
	FILE *out = writer->out;

	if (doubts) {
		fputc(' ', out);
		leak_words_certainty(out, doubts);
	}
	if (stack_lines_has_other(&writer->stacks, op->stack_id, op->schema->function))
		fprintf(out, " function=%s", op->schema->function);
	/* An earlier process had the same number. */
	if (!process || op->time_ns + age_ns != process->end_ns) {
		fputs(" age=", out);
		leaks_write_time(out, age_ns);
	}
}

static void write_leak(struct writer *writer, size_t index)
{
	const struct leak_report *report = writer->report;
	const struct heap_block *block = &report->held[index];
	const struct heap_op *op = &block->allocated;
	FILE *out = writer->out;

	if (report->choices[index] != LEAK_LISTED)
		return;
	stack_lines_define(&writer->stacks, op->stack_id, op->schema->function);
	fputs("leak ", out);
	leaks_write_operation(out, block, op);
	fprintf(out, " %" PRIu32 " %s %s", op->stack_id,
		verdict_name((enum verdict)report->verdicts.blocks[index].verdict),
		stack_lines_caller(&writer->stacks, op->stack_id));
	write_exceptions(writer, index);
	if (report->reach && reach_class_words[report->reach[index]])
		fprintf(out, " reach=%s", reach_class_words[report->reach[index]]);
	if (report->holders)
		cause_holder_write_key(out, report->holders[index]);
	write_kind(out, op);
	resource_report_write_counts(out, report, block);
	fputc('\n', out);
	resource_report_write_history(&writer->stacks, report, block);
	if (writer->nr_written++ % PROGRESS_EVERY == 0)
		progress_count(report->analysis->progress, writer->nr_written, report->nr_held,
			       "blocks");
}

static void write_leaks_of(struct writer *writer, const struct leak_site *site)
{
	const struct leak_report *report = writer->report;
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];

	for (size_t i = 0; i < verdict->held_blocks && !ferror(writer->out); i++)
		write_leak(writer, report->verdicts.order[verdict->first + i]);
}

static void write_leaks(struct writer *writer)
{
	const struct leak_report *report = writer->report;

	fputs("# columns: leak SIZE ADDRESS TIME EVENT PID TID STACK VERDICT CALLER "
	      "KEY=VALUE...\n",
	      writer->out);
	if (report->options->order == LEAK_ORDER_TIME)
		for (size_t i = 0; i < report->nr_held && !ferror(writer->out); i++)
			write_leak(writer, i);
	else
		for (size_t i = 0; i < report->nr_listed_sites; i++)
			write_leaks_of(writer, &report->sites[i]);
}

/* Readers name stacks as this text does. */
static void write_wrappers(FILE *out, const struct own_wrappers *wrappers)
{
	if (wrappers->nr)
		fputs("# columns: wrapper FUNCTION MODULE\n", out);
	for (size_t i = 0; i < wrappers->nr; i++) {
		fputs("wrapper ", out);
		diag_print_escaped(out, wrappers->list[i].function, " \t");
		fputs(" (", out);
		diag_print_escaped(out, wrappers->list[i].module, NULL);
		fputs(")\n", out);
	}
}

/* All lines after the summary and its comments. */
static int write_items(struct writer *writer)
{
	const struct leak_report *report = writer->report;
	int err = write_processes(writer);

	if (!err && !writer->is_short)
		err = write_threads(writer->out, report);
	if (err)
		return err;
	write_wrappers(writer->out, &report->wrappers);
	cause_holder_define(writer->out, report);
	fputs("# columns: frames STACK FUNCTION CALLER\n", writer->out);
	/* In time order, the text lists blocks only. */
	if (report->options->order != LEAK_ORDER_TIME) {
		err = write_causes(writer);
		if (!err)
			write_sites(writer);
		if (!err)
			err = history_write(&writer->stacks, report, writer->causes);
	}
	if (!writer->is_short) {
		write_anomalies(&writer->stacks, report);
		write_leaks(writer);
	}
	return err ? err : writer->stacks.err;
}

static int write_text(struct writer *writer, const char *head)
{
	const struct leak_report *report = writer->report;
	FILE *out = writer->out;
	int err = stack_lines_init(&writer->stacks, report->analysis, out);

	fputs("# leaks 2\n", out);
	write_summary(out, report);
	resource_report_write_kinds(out, report);
	leaks_write_comments(out, report);
	fputs(head, out);
	writer->stacks.stack.wrappers = &report->wrappers;
	if (!err)
		err = write_items(writer);
	stack_lines_deinit(&writer->stacks);
	free(writer->processes);
	free(writer->causes);
	return fflush(out) || ferror(out) ? -EIO : err;
}

int leaks_write(FILE *out, const struct leak_report *report)
{
	return write_text(&(struct writer){.out = out, .report = report, .max = SIZE_MAX}, "");
}

int leaks_write_short(FILE *out, const struct leak_report *report, const char *head, size_t max)
{
	return write_text(
		&(struct writer){.out = out, .report = report, .max = max, .is_short = true}, head);
}
