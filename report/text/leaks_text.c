/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leaks_text.h"

#include "common/diag.h"
#include "parser/verdicts/pairing_audit.h"
#include "parser/windows/observed_time.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"

#include <inttypes.h>
#include <math.h>

#define NR_SHOWN_WINDOWS 3 /* the first and the last ones */

void leaks_write_time(FILE *out, uint64_t time_ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000, time_ns % 1000000000);
}

void leaks_write_time_since_start(FILE *out, const struct analysis *analysis, uint64_t time_ns)
{
	leaks_write_time(out, time_ns > analysis->start_ns ? time_ns - analysis->start_ns : 0);
}

void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window)
{
	leaks_write_time_since_start(out, analysis, window->start_ns);
	fputs("..", out);
	leaks_write_time_since_start(out, analysis, window->end_ns);
}

void leaks_write_operation(FILE *out, const struct heap_block *block, const struct heap_op *op)
{
	if (block->size_known)
		fprintf(out, "%" PRIu64, block->size_bytes);
	else
		fputc('?', out);
	fprintf(out, " 0x%" PRIx64 " ", block->address);
	leaks_write_time(out, op->time_ns);
	fprintf(out, " %" PRIu64 " %d %d", op->sequence, op->pid, op->tid);
}

void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op)
{
	const char *comm = heap_tracker_comm_of(analysis->heaps, op->tid);

	leaks_write_operation(out, block, op);
	fputc(' ', out);
	diag_print_escaped(out, *comm ? comm : "?", " \t");
	fprintf(out, " %s %" PRIu32, op->schema->function, op->stack_id);
}

void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id, size_t first)
{
	size_t nr = stack_store_nr_frames(analysis->stacks, stack_id), nr_before = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;

		if (stack_store_frames(analysis->stacks, stack_id, i, &frames, &nr_frames)) {
			fputs("\t\n", out);
			continue;
		}
		for (size_t k = 0; k < nr_frames; k++) {
			if (nr_before++ < first)
				continue;
			fputc('\t', out);
			stack_frame_print(&frames[k], out);
			fputc('\n', out);
		}
	}
}

void leaks_write_rate(FILE *out, const struct site_verdict *verdict)
{
	if (verdict->has_rate)
		fprintf(out,
			" blocks_per_s=%.4g blocks_error=%.2g bytes_per_s=%.4g bytes_error=%.2g",
			verdict->rate.blocks_per_s, verdict->rate.blocks_error,
			verdict->rate.bytes_per_s, verdict->rate.bytes_error);
}

void leaks_write_estimate(FILE *out, const struct site_verdict *verdict,
			  const struct leak_estimate *estimate)
{
	if (!verdict->in_windows)
		return;
	fprintf(out,
		" estimated_blocks=%.0f estimated_blocks_error=%.2g estimated_bytes=%.0f"
		" estimated_bytes_error=%.2g",
		estimate->blocks, sqrt(estimate->blocks_variance), estimate->bytes,
		sqrt(estimate->bytes_variance));
	if (verdict->stays >= 0)
		fprintf(out, " stays=%.3g", verdict->stays);
}

void leaks_write_observed(FILE *out, const struct leak_report *report)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(report->analysis->heaps);

	if (!report->in_windows)
		return;
	fprintf(out,
		" windows=%" PRIu64 " observed=%.4g estimated_blocks=%.0f estimated_bytes=%.0f"
		" unobserved_blocks=%" PRIu64 " followed_blocks=%" PRIu64 " looks=%" PRIu64,
		heap_tracker_observed(report->analysis->heaps)->nr_opened,
		analysis_observed_share(report->analysis), report->estimate.blocks,
		report->estimate.bytes, stats->unobserved_blocks, stats->followed_blocks,
		stats->looks);
}

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
			" processes, threads or files were unguarded\n",
			analysis->unguarded_tasks);
	else if (analysis->may_miss)
		fputs("# lost: possibly uncounted events: " INPUT_ADVICE_FIRST_CALLS "\n", out);
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

void leaks_write_comments(FILE *out, const struct leak_report *report)
{
	write_losses(out, report->analysis);
	write_audit(out, report);
	if (reach_is_later(report->analysis->reach))
		fputs("# scanned: after the recording; reach= is about what has the address then\n",
		      out);
	if (report->reach)
		leak_words_unseen(out, report->analysis->reach);
	write_suppressions(out, report);
}
