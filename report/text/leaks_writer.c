/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leaks_writer.h"

#include "common/diag.h"
#include "common/scope.h"
#include "parser/verdicts/leak_processes.h"
#include "parser/verdicts/pairing_audit.h"
#include "report/text/history_writer.h"
#include "report/text/leak_words.h"
#include "report/text/leaks_text.h"
#include "report/text/resource_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define NR_SHOWN_WINDOWS 3 /* the first and the last ones */

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

/* Of many windows, only the first and the last ones. */
static void write_losses(FILE *out, const struct analysis *analysis)
{
	size_t nr;
	const struct loss_window *windows = loss_windows_list(analysis->loss_windows, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (nr > 2 * NR_SHOWN_WINDOWS && i == NR_SHOWN_WINDOWS) {
			fprintf(out, "# lost: %zu more windows\n", nr - 2 * NR_SHOWN_WINDOWS);
			i = nr - NR_SHOWN_WINDOWS;
		}
		if (windows[i].lost < LOSS_UNKNOWN)
			fprintf(out, "# lost: %" PRIu64, windows[i].lost);
		else
			fputs("# lost: an unknown number of", out);
		fputs(" events within ", out);
		leaks_write_window(out, analysis, &windows[i]);
		fputs(" s after the start\n", out);
	}
	if (analysis->lost_any_time)
		fprintf(out, "# lost: %" PRIu64 " events at any time\n", analysis->lost_any_time);
	if (analysis->unguarded_tasks)
		fprintf(out,
			"# lost: possibly uncounted events: %" PRIu64
			" processes or threads were unguarded\n",
			analysis->unguarded_tasks);
}

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

	loss_windows_list(analysis->loss_windows, &nr_windows);
	fputs("# summary", out);
	if (options->size) {
		fputs(" size=", out);
		leaks_write_size(out, options->size);
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
	fputs(" start=", out);
	leaks_write_time(out, analysis->start_ns);
	fputs(" end=", out);
	leaks_write_time(out, analysis->end_ns);
	fputc('\n', out);
}

/* The lines of blocks name threads. Returns 0 or -ENOMEM. */
static int write_processes(FILE *out, const struct leak_report *report)
{
	_cleanup_free_ struct leak_process *processes = NULL;
	size_t nr;
	int err = leak_processes_find(report, &processes, &nr);

	if (err)
		return err;
	fputs("# columns: process PID NAME BLOCKS BYTES\n", out);
	for (size_t i = 0; i < nr; i++) {
		const char *name = heap_tracker_process_name(report->analysis->heaps,
							     processes[i].pid, processes[i].tid);

		fprintf(out, "process %d ", processes[i].pid);
		diag_print_escaped(out, *name ? name : "?", " \t");
		fprintf(out, " %" PRIu64 " %" PRIu64 "\n", processes[i].blocks, processes[i].bytes);
	}
	return 0;
}

/* An earlier operation on the block: its allocation or first release. */
static void write_related(FILE *out, const struct analysis *analysis, const char *what,
			  const struct heap_block *block, const struct heap_op *op)
{
	fprintf(out, "%s ", what);
	leaks_write_columns(out, analysis, block, op);
	fputc('\n', out);
	leaks_write_stack(out, analysis, op->stack_id);
}

/* " kind=file" for a resource; nothing for memory. */
static void write_kind(FILE *out, const struct heap_op *op)
{
	const struct resource_call *call = resource_call_of(op->schema);

	if (call)
		fprintf(out, " kind=%s", call->kind->name);
}

static void write_anomaly(FILE *out, const struct analysis *analysis,
			  const struct heap_anomaly *anomaly)
{
	struct heap_block block = anomaly->block;

	block.address = anomaly->address;
	fprintf(out, "unexpected %s ", anomaly_names[anomaly->kind].kind);
	leaks_write_columns(out, analysis, &block, &anomaly->op);
	write_kind(out, &anomaly->op);
	fputc('\n', out);
	leaks_write_stack(out, analysis, anomaly->op.stack_id);
	if (anomaly->kind == ANOMALY_DOUBLE_FREE)
		write_related(out, analysis, "freed-before", &block, &anomaly->released);
	if ((anomaly->kind == ANOMALY_DOUBLE_FREE || anomaly->kind == ANOMALY_STILL_HELD ||
	     anomaly->kind == ANOMALY_MISMATCH) &&
	    block.allocated.schema)
		write_related(out, analysis, "allocated", &block, &block.allocated);
}

static void write_anomalies(FILE *out, const struct leak_report *report)
{
	const struct heap_tracker *heaps = report->analysis->heaps;
	const struct heap_anomaly *anomalies;
	size_t nr;

	anomalies = heap_tracker_anomalies(heaps, &nr);
	fputs("# columns: unexpected KIND SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK\n",
	      out);
	for (size_t i = 0; i < nr && !ferror(out); i++)
		if ((anomalies[i].kind != ANOMALY_FREE_UNKNOWN || report->options->list_unknown) &&
		    leak_report_wants(report, &anomalies[i].block, &anomalies[i].op))
			write_anomaly(out, report->analysis, &anomalies[i]);
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (heap_tracker_unlisted(heaps)[i] &&
		    (i != ANOMALY_FREE_UNKNOWN || report->options->list_unknown))
			fprintf(out, "# not listed: %" PRIu64 " more %s\n",
				heap_tracker_unlisted(heaps)[i], anomaly_names[i].kind);
}

static void write_audit(FILE *out, const struct leak_report *report)
{
	struct audit_finding findings[AUDIT_NR_KINDS];

	pairing_audit(report->analysis, findings);
	for (size_t i = 0; i < AUDIT_NR_KINDS; i++)
		if (findings[i].count)
			fprintf(out, "# audit: %s %" PRIu64 " %s; effect: %s\n", findings[i].key,
				findings[i].count, findings[i].what, findings[i].effect);
}

static void write_suppressions(FILE *out, const struct leak_report *report)
{
	const struct suppressions *suppressions = report->options->suppressions;

	for (size_t i = 0; suppressions && i < suppressions->nr; i++) {
		const struct suppression *suppression = &suppressions->list[i];

		fprintf(out, "# suppressed: %" PRIu64 " blocks, %" PRIu64 " bytes by leak:",
			suppression->blocks, suppression->bytes);
		diag_print_escaped(out, suppression->pattern, NULL);
		fputs(suppression->used ? "\n" : " (unused)\n", out);
	}
}

/* The comment before a stack line, for people. */
static void write_site_comment(FILE *out, const struct leak_report *report,
			       const struct leak_site *site, size_t rank)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	const struct resource_kind *kind = leak_report_kind_of(report, site);

	fprintf(out, "# %zu. %s, ", rank, verdict_name(verdict->verdict));
	leak_words_certainty(out, verdict->doubts);
	fputs(": ", out);
	leak_words_held(out, kind, site->blocks, site->bytes);
	if (verdict->has_rate) {
		fputs(", ", out);
		leak_words_rate(out, kind, &verdict->rate);
	}
	fputs("; ", out);
	leak_words_lifetimes(out, kind, verdict);
	fputc('\n', out);
}

static void write_site_statistics(FILE *out, const struct analysis *analysis,
				  const struct site_verdict *verdict)
{
	const struct site *site = verdict->site;

	fprintf(out,
		" allocations=%" PRIu64 " frees=%" PRIu64 " temporaries=%" PRIu64
		" allocated_bytes=%" PRIu64 " peak_blocks=%" PRIu64 " peak_bytes=%" PRIu64,
		site->allocations, site->frees, site->temporaries, site->allocated_bytes,
		site->peak_blocks, site->peak_bytes);
	fputs(" first=", out);
	leaks_write_time(out, site->first_ns);
	fputs(" last=", out);
	leaks_write_time(out, site->last_ns);
	fprintf(out,
		" oldest=%.9g firm_blocks=%" PRIu64 " suspect_blocks=%" PRIu64
		" suspect_bytes=%" PRIu64,
		verdict->oldest_s, verdict->firm_blocks, verdict->suspect_blocks,
		verdict->suspect_bytes);
	if (site->frees)
		fprintf(out, " median=%.3g p99=%.3g", verdict->median_s, verdict->p99_s);
	if (verdict->has_rate)
		fprintf(out,
			" blocks_per_s=%.4g blocks_error=%.2g bytes_per_s=%.4g bytes_error=%.2g",
			verdict->rate.blocks_per_s, verdict->rate.blocks_error,
			verdict->rate.bytes_per_s, verdict->rate.bytes_error);
	if (verdict->exited)
		fputs(" exited=1", out);
}

static void write_sites(FILE *out, const struct leak_report *report)
{
	fputs("# columns: stack RANK VERDICT CERTAINTY BLOCKS BYTES STACK FUNCTION KEY=VALUE...\n",
	      out);
	for (size_t i = 0; i < report->nr_listed_sites && !ferror(out); i++) {
		const struct leak_site *site = &report->sites[i];
		const struct site_verdict *verdict = &report->verdicts.sites[site->site];
		const struct heap_block *block =
			&report->held[report->verdicts.order[verdict->first]];

		write_site_comment(out, report, site, i + 1);
		fprintf(out, "stack %zu %s ", i + 1, verdict_name(verdict->verdict));
		leak_words_certainty(out, verdict->doubts);
		fprintf(out, " %" PRIu64 " %" PRIu64 " %" PRIu32 " %s", site->blocks, site->bytes,
			verdict->site->stack_id, block->allocated.schema->function);
		write_site_statistics(out, report->analysis, verdict);
		write_kind(out, &block->allocated);
		fputc('\n', out);
		leaks_write_stack(out, report->analysis, verdict->site->stack_id);
	}
}

/* A copy of the last stack's text: the next leak mostly has the same stack. */
struct stack_text {
	uint32_t id; /* STACK_NONE: none */
	char *text;
	size_t len;
};

static void write_stack_again(FILE *out, const struct analysis *analysis, uint32_t id,
			      struct stack_text *last)
{
	FILE *stream;

	if (last->id != id || id == STACK_NONE) {
		free(last->text);
		*last = (struct stack_text){0};
		stream = open_memstream(&last->text, &last->len);
		if (stream) {
			leaks_write_stack(stream, analysis, id);
			if (fclose(stream) == 0)
				last->id = id;
		}
	}
	if (last->id == id)
		fwrite(last->text, 1, last->len, out);
	else
		leaks_write_stack(out, analysis, id);
}

static void write_leak(FILE *out, const struct leak_report *report, size_t index,
		       struct stack_text *last)
{
	const struct heap_block *block = &report->held[index];
	const struct block_verdict *verdict = &report->verdicts.blocks[index];

	if (report->choices[index] != LEAK_LISTED)
		return;
	fputs("leak ", out);
	leaks_write_columns(out, report->analysis, block, &block->allocated);
	fputc(' ', out);
	leak_words_certainty(out, verdict->doubts);
	fprintf(out, " %s age=", verdict_name(verdict->verdict));
	leaks_write_time(out, leak_report_age_ns(report, block));
	if (verdict->ordinary >= 0)
		fprintf(out, " ordinary=%.2g", verdict->ordinary);
	write_kind(out, &block->allocated);
	resource_report_write_counts(out, report, block);
	fputc('\n', out);
	write_stack_again(out, report->analysis, block->allocated.stack_id, last);
	resource_report_write_history(out, report, block);
}

static void write_leaks_of(FILE *out, const struct leak_report *report,
			   const struct leak_site *site, struct stack_text *last)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];

	for (size_t i = 0; i < verdict->held_blocks && !ferror(out); i++)
		write_leak(out, report, report->verdicts.order[verdict->first + i], last);
}

static void write_leaks(FILE *out, const struct leak_report *report)
{
	struct stack_text last = {0};

	fputs("# columns: leak SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK CERTAINTY "
	      "VERDICT KEY=VALUE...\n",
	      out);
	if (report->options->order == LEAK_ORDER_TIME)
		for (size_t i = 0; i < report->nr_held && !ferror(out); i++)
			write_leak(out, report, i, &last);
	else
		for (size_t i = 0; i < report->nr_listed_sites; i++)
			write_leaks_of(out, report, &report->sites[i], &last);
	free(last.text);
}

int leaks_write(FILE *out, const struct leak_report *report)
{
	int err;

	fputs("# leaks 1\n", out);
	write_summary(out, report);
	resource_report_write_kinds(out, report);
	write_losses(out, report->analysis);
	write_audit(out, report);
	write_suppressions(out, report);
	err = write_processes(out, report);
	/* In time order, the text lists blocks only. */
	if (report->options->order != LEAK_ORDER_TIME) {
		write_sites(out, report);
		if (!err)
			err = history_write(out, report);
	}
	write_anomalies(out, report);
	write_leaks(out, report);
	return fflush(out) || ferror(out) ? -EIO : err;
}
