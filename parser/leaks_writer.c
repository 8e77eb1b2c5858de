/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/leaks_writer.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>

#define NR_SHOWN_WINDOWS 3 /* at either end */

/* The words for the kinds of anomaly: of the `unexpected` lines, and of the summary's counters. */
static const struct {
	const char *kind;
	const char *counter;
} anomaly_names[ANOMALY_NR_KINDS] = {
	[ANOMALY_FREE_UNKNOWN] = {"free-unknown", "free_unknown"},
	[ANOMALY_DOUBLE_FREE] = {"double-free", "double_free"},
	[ANOMALY_STILL_HELD] = {"still-held", "still_held"},
	[ANOMALY_REALLOC_UNKNOWN] = {"realloc-unknown", "realloc_unknown"},
	[ANOMALY_ALLOC_FAILED] = {"alloc-failed", "alloc_failed"},
};

static void write_time(FILE *out, uint64_t time_ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000, time_ns % 1000000000);
}

static void write_time_since_start(FILE *out, const struct analysis *analysis, uint64_t time_ns)
{
	write_time(out, time_ns > analysis->start_ns ? time_ns - analysis->start_ns : 0);
}

void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window)
{
	write_time_since_start(out, analysis, window->start_ns);
	fputs("..", out);
	write_time_since_start(out, analysis, window->end_ns);
}

/* Of many windows the first and the last ones. */
static void write_losses(FILE *out, const struct analysis *analysis)
{
	size_t nr;
	const struct loss_window *windows = loss_windows_list(analysis->loss_windows, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (nr > 2 * NR_SHOWN_WINDOWS && i == NR_SHOWN_WINDOWS) {
			fprintf(out, "# lost: %zu windows more\n", nr - 2 * NR_SHOWN_WINDOWS);
			i = nr - NR_SHOWN_WINDOWS;
		}
		fprintf(out, "# lost: %" PRIu64 " events within ", windows[i].lost);
		leaks_write_window(out, analysis, &windows[i]);
		fputs(" s after the start\n", out);
	}
	if (analysis->lost_any_time)
		fprintf(out, "# lost: %" PRIu64 " events at any time\n", analysis->lost_any_time);
}

void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op)
{
	const char *comm = heap_tracker_comm_of(analysis->heaps, op->tid);

	if (block->size_known)
		fprintf(out, "%" PRIu64, block->size_bytes);
	else
		fputc('?', out);
	fprintf(out, " 0x%" PRIx64 " ", block->address);
	write_time(out, op->time_ns);
	fprintf(out, " %" PRIu64 " %d %d ", op->sequence, op->pid, op->tid);
	diag_print_escaped(out, *comm ? comm : "?", " \t");
	fprintf(out, " %s %" PRIu32 "\n", op->schema->function, op->stack_id);
}

void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id)
{
	size_t nr = stack_store_nr_frames(analysis->stacks, stack_id);

	for (size_t i = 0; i < nr; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;

		if (stack_store_frames(analysis->stacks, stack_id, i, &frames, &nr_frames)) {
			fputs("\t\n", out);
			continue;
		}
		for (size_t k = 0; k < nr_frames; k++) {
			fputc('\t', out);
			stack_frame_print(&frames[k], out);
			fputc('\n', out);
		}
	}
}

static bool is_wanted(const struct leaks_options *options, const struct heap_block *block)
{
	return !options->size ||
	       (block->size_known && size_range_has(options->size, block->size_bytes));
}

int leaks_count(const struct analysis *analysis, const struct leaks_options *options,
		struct leaks_totals *ret)
{
	const struct heap_anomaly *anomalies;
	const struct heap_block *held;
	size_t nr;
	int err = heap_tracker_held(analysis->heaps, &held, &nr);

	*ret = (struct leaks_totals){0};
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		if (!is_wanted(options, &held[i]))
			continue;
		ret->held_blocks++;
		ret->held_bytes += held[i].size_bytes;
	}
	anomalies = heap_tracker_anomalies(analysis->heaps, &nr);
	for (size_t i = 0; i < nr; i++)
		ret->anomalies[anomalies[i].kind] += is_wanted(options, &anomalies[i].block);
	return 0;
}

void leaks_write_size(FILE *out, const struct size_range *size)
{
	fprintf(out, "%" PRIu64, size->min_bytes);
	if (size->max_bytes != size->min_bytes)
		fprintf(out, "..%" PRIu64, size->max_bytes);
}

/* What is held and the kinds of anomaly are of the wanted size, the rest is of all sizes. */
static void write_summary(FILE *out, const struct analysis *analysis,
			  const struct leaks_options *options, const struct leaks_totals *totals)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	size_t nr_windows;

	loss_windows_list(analysis->loss_windows, &nr_windows);
	fputs("# summary", out);
	if (options->size) {
		fputs(" size=", out);
		leaks_write_size(out, options->size);
	}
	fprintf(out,
		" events=%" PRIu64 " allocations=%" PRIu64 " frees=%" PRIu64 " held_blocks=%" PRIu64
		" held_bytes=%" PRIu64 " lost=%" PRIu64 " unwind_failures=%" PRIu64,
		stats->events, stats->allocations, stats->frees, totals->held_blocks,
		totals->held_bytes, analysis->lost, analysis_unwind_failures(analysis));
	fprintf(out,
		" allocated_bytes=%" PRIu64 " freed_bytes=%" PRIu64 " null_frees=%" PRIu64
		" thread_exit_frees=%" PRIu64,
		stats->allocated_bytes, stats->freed_bytes, stats->null_frees,
		stats->thread_exit_frees);
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		fprintf(out, " %s=%" PRIu64, anomaly_names[i].counter, totals->anomalies[i]);
	fprintf(out,
		" unpaired_entries=%" PRIu64 " unpaired_returns=%" PRIu64
		" unlocated_blocks=%" PRIu64 " dropped_by_exec=%" PRIu64 " truncated=%d",
		stats->entries_without_return, stats->returns_without_entry,
		stats->blocks_unlocated, stats->blocks_dropped_by_exec, analysis->input.truncated);
	fprintf(out, " loss_windows=%zu lost_any_time=%" PRIu64, nr_windows,
		analysis->lost_any_time);
	fputs(" start=", out);
	write_time(out, analysis->start_ns);
	fputs(" end=", out);
	write_time(out, analysis->end_ns);
	fputc('\n', out);
}

/* What an anomaly rests on: where the block came from, or who released it first. */
static void write_related(FILE *out, const struct analysis *analysis, const char *what,
			  const struct heap_block *block, const struct heap_op *op)
{
	fprintf(out, "%s ", what);
	leaks_write_columns(out, analysis, block, op);
	leaks_write_stack(out, analysis, op->stack_id);
}

static void write_anomaly(FILE *out, const struct analysis *analysis,
			  const struct heap_anomaly *anomaly)
{
	struct heap_block block = anomaly->block;

	block.address = anomaly->address;
	fprintf(out, "unexpected %s ", anomaly_names[anomaly->kind].kind);
	leaks_write_columns(out, analysis, &block, &anomaly->op);
	leaks_write_stack(out, analysis, anomaly->op.stack_id);
	if (anomaly->kind == ANOMALY_DOUBLE_FREE)
		write_related(out, analysis, "freed-before", &block, &anomaly->released);
	if ((anomaly->kind == ANOMALY_DOUBLE_FREE || anomaly->kind == ANOMALY_STILL_HELD) &&
	    block.allocated.schema)
		write_related(out, analysis, "allocated", &block, &block.allocated);
}

int leaks_write(FILE *out, const struct analysis *analysis, const struct leaks_options *options,
		const struct leaks_totals *totals)
{
	const struct heap_anomaly *anomalies;
	const struct heap_block *held;
	size_t nr_anomalies, nr_held;
	int err = heap_tracker_held(analysis->heaps, &held, &nr_held);

	if (err)
		return err;
	fputs("# leaks 1\n", out);
	write_summary(out, analysis, options, totals);
	write_losses(out, analysis);

	anomalies = heap_tracker_anomalies(analysis->heaps, &nr_anomalies);
	fputs("# columns: unexpected KIND SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK\n",
	      out);
	for (size_t i = 0; i < nr_anomalies && !ferror(out); i++)
		if (is_wanted(options, &anomalies[i].block) &&
		    (anomalies[i].kind != ANOMALY_FREE_UNKNOWN || options->list_unknown))
			write_anomaly(out, analysis, &anomalies[i]);

	fputs("# columns: leak SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK\n", out);
	for (size_t i = 0; i < nr_held && !ferror(out); i++) {
		if (!is_wanted(options, &held[i]))
			continue;
		fputs("leak ", out);
		leaks_write_columns(out, analysis, &held[i], &held[i].allocated);
		leaks_write_stack(out, analysis, held[i].allocated.stack_id);
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
