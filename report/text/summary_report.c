/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/summary_report.h"

#include "common/colour.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "parser/verdicts/leak_processes.h"
#include "parser/verdicts/pairing_audit.h"
#include "parser/windows/observed_time.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"
#include "report/text/memory_report.h"
#include "report/text/resource_report.h"
#include "report/text/summary_rows.h"
#include "report/text/wrapped_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_LINES  24
#define MAX_PROCESSES 5	 /* listed one by one */
#define PROOF_COLUMNS 17 /* of each of four kinds; with the verdict they fit in 80 */

/* Those that hold blocks, the worst first; of several also, by process, what is of which kind. */
struct holders {
	struct leak_process *list, *kinds;
	size_t nr, nr_kinds;
};

/*
 * When the blocks were held. Where blocks of a process that has exited are listed, they were held
 * until then.
 */
static void write_when(FILE *out, const struct leak_report *report, size_t nr_holders)
{
	const char *owner = nr_holders > 1 ? "their processes" : "its process";
	uint64_t exited = report->exited_blocks;

	/* The numbers would be those of the sample. */
	if (report->in_windows) {
		fputs(", held ", out);
		leak_words_moment(out, report->analysis);
		if (exited)
			fprintf(out, " or when %s exited", owner);
		return;
	}
	if (exited && exited < report->held_blocks)
		fprintf(out, " %" PRIu64, report->held_blocks - exited);
	if (!exited || exited < report->held_blocks) {
		fputs(" held ", out);
		leak_words_moment(out, report->analysis);
	}
	if (exited && exited < report->held_blocks)
		fprintf(out, ", %" PRIu64 " when %s exited", exited, owner);
	else if (exited)
		fprintf(out, " held when %s exited", owner);
}

/* What may be said of all time. */
static void write_in_windows(FILE *out, const struct leak_report *report)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(report->analysis->heaps);

	if (!report->held_blocks) {
		fputs(stats->looks
			      ? "No block is known to be held"
			      : "No block was looked at after its window: none is known to be held",
		      out);
		return;
	}
	fputs("Estimated from a sample of ", out);
	leak_words_held(out, NULL, report->held_blocks, report->held_bytes);
	fputs(": ", out);
	leak_words_estimate(out, NULL, &report->estimate);
	fprintf(out, " in %" PRIu64 " stack%s", report->memory_sites,
		quantity_plural(report->memory_sites));
}

static void write_pace(FILE *out, const struct leak_report *report)
{
	char words[LEAK_WORDS_PACE];

	leak_words_pace(report, words);
	if (*words)
		fprintf(out, "%s\n", words);
}

/* The process, the duration and the amounts. */
static void write_head(FILE *out, const struct leak_report *report, const struct holders *holders)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	double length_s = analysis->end_ns > analysis->start_ns
				  ? (double)(analysis->end_ns - analysis->start_ns) / 1e9
				  : 0;
	const char *words;

	if (holders->nr > 1) {
		fprintf(out, "%zu processes: ", holders->nr);
	} else if (holders->nr) {
		leak_words_process(out, report, holders->list[0].pid, holders->list[0].tid);
		fputs(": ", out);
	}
	fputs(quantity_duration(length_s).text, out);
	if (report->in_windows)
		fprintf(out, " recorded in %" PRIu64 " window%s, %.3g %% of the time",
			heap_tracker_observed(analysis->heaps)->nr_opened,
			quantity_plural(heap_tracker_observed(analysis->heaps)->nr_opened),
			100 * analysis_observed_share(analysis));
	else
		fputs(" recorded", out);
	fprintf(out, ", %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64 "%s event%s lost\n",
		stats->allocations, quantity_plural(stats->allocations), stats->frees,
		quantity_plural(stats->frees), analysis->lost, analysis->may_miss ? " or more" : "",
		quantity_plural(analysis->may_miss ? 0 : analysis->lost));
	if (analysis->input.command.has_sizes) {
		fputs("Only blocks of ", out);
		size_range_write(out, &analysis->input.command.sizes);
		fputs(" bytes were recorded (leakrec --size)\n", out);
	}
	if (analysis->input.command.partial)
		fprintf(out, "Only a part of the calls was recorded (leakrec %s)\n",
			analysis->input.command.partial);
	if (!stats->events && !analysis->was_enough) {
		words = leak_words_unrecorded(analysis);
		fprintf(out, "%c%s\n", toupper(*words), words + 1);
		return;
	}
	if (report->in_windows) {
		write_in_windows(out, report);
	} else if (!report->held_blocks) {
		fputs(resource_report_has_any(report) ? "No recorded memory" : "Nothing", out);
	} else {
		leak_words_held(out, NULL, report->held_blocks, report->held_bytes);
		fprintf(out, " in %" PRIu64 " stack%s,", report->memory_sites,
			quantity_plural(report->memory_sites));
	}
	if (!report->in_windows || report->held_blocks)
		write_when(out, report, holders->nr);
	leak_words_certain(out, report);
	if (report->suppressed_blocks)
		fprintf(out, "; %" PRIu64 " suppressed", report->suppressed_blocks);
	if (leak_report_is_narrowed(report) || report->options->size)
		fputs(" (filtered)", out);
	fputc('\n', out);
	if (report->in_windows && report->held_blocks)
		write_pace(out, report);
	resource_report_write_summary(out, report);
}

/*
 * "12 blocks, 1.50 KiB, of 20 held, 2.00 KiB; 3 fds, of 5 held"; without leaks in any process only
 * what it holds.
 */
static void write_amounts(FILE *out, const struct holders *holders, pid_t pid, bool has_leaks)
{
	const char *separator = ": ";

	for (size_t i = 0; i < holders->nr_kinds; i++) {
		const struct leak_process *held = &holders->kinds[i];

		if (held->pid != pid)
			continue;
		fputs(separator, out);
		separator = "; ";
		leak_words_held(out, held->kind, has_leaks ? held->leaked_blocks : held->blocks,
				has_leaks ? held->leaked_bytes : held->bytes);
		if (!has_leaks)
			continue;
		fprintf(out, ", of %" PRIu64 " held", held->blocks);
		if (!held->kind || held->bytes)
			fprintf(out, ", %s", quantity_bytes((double)held->bytes).text);
	}
	fputc('\n', out);
}

/* "hold blocks"; of memory that all went with its process, "held blocks when they exited". */
static const char *what_they_hold(const struct leak_report *report, const struct holders *holders)
{
	bool has_memory = false, has_others = false;

	for (size_t i = 0; i < holders->nr_kinds; i++) {
		has_memory |= !holders->kinds[i].kind;
		has_others |= holders->kinds[i].kind != NULL;
	}
	if (has_others)
		return has_memory ? "hold blocks and resources" : "hold resources";
	return report->exited_blocks && report->exited_blocks == report->held_blocks
		       ? "held blocks when they exited"
		       : "hold blocks";
}

/* The processes that leak most, if there are several. Returns the number of lines. */
static int write_processes(FILE *out, const struct leak_report *report,
			   const struct holders *holders)
{
	const struct leak_process *processes = holders->list;
	size_t nr = holders->nr;
	bool has_leaks = nr && processes[0].leaked_blocks;
	int nr_lines = 0;

	if (nr < 2)
		return 0;
	fprintf(out, "\n  %zu processes %s; %s first%s:\n", nr, what_they_hold(report, holders),
		has_leaks ? "worst leakers" : "those with the most",
		report->in_windows ? " (only blocks that were looked at)" : "");
	for (size_t i = 0; i < nr && i < MAX_PROCESSES; i++, nr_lines++) {
		fputs("  ", out);
		leak_words_process(out, report, processes[i].pid, processes[i].tid);
		write_amounts(out, holders, processes[i].pid, has_leaks);
	}
	if (nr > MAX_PROCESSES)
		fprintf(out, "  and %zu more\n", nr - MAX_PROCESSES);
	return nr_lines + 2 + (nr > MAX_PROCESSES);
}

/* What a scan says of all that is held. */
static void write_reach(FILE *out, const struct leak_report *report)
{
	uint64_t blocks[REACH_NR_PROOFS] = {0}, bytes[REACH_NR_PROOFS] = {0};

	if (!report->reach)
		return;
	for (int i = 0; i < VERDICT_NR; i++)
		for (enum reach_group group = 0; group < REACH_NR_PROOFS; group++) {
			blocks[group] += report->reach_of[i].blocks[group];
			bytes[group] += report->reach_of[i].bytes[group];
		}
	fputs(report->in_windows ? "Scanned, of the sample: " : "Scanned: ", out);
	if (!blocks[REACH_GROUP_LOST] && !blocks[REACH_GROUP_NO_HOLDER]) {
		fputs(report->worst == REACH_GROUP_LOST
			      ? "no block is proven lost\n"
			      : "no block was found that nothing points to\n",
		      out);
		return;
	}
	for (enum reach_group group = REACH_GROUP_LOST; group <= REACH_GROUP_NO_HOLDER; group++) {
		if (!blocks[group])
			continue;
		if (group == REACH_GROUP_NO_HOLDER && blocks[REACH_GROUP_LOST])
			fputs("         ", out);
		leak_words_held(out, NULL, blocks[group], bytes[group]);
		if (group == REACH_GROUP_LOST)
			fprintf(out, ", %s", quantity_word(blocks[group], "is", "are"));
		else
			fputs(", with", out);
		fprintf(out, " %s: %s\n", reach_group_words[group], reach_group_meanings[group]);
	}
}

/* Of which blocks it has proven nothing, and why. */
static void write_limits(FILE *out, const struct leak_report *report)
{
	for (enum reach_group group = REACH_GROUP_POINTED; group < REACH_NR_PROOFS; group++) {
		uint64_t blocks = 0;

		for (int i = 0; i < VERDICT_NR; i++)
			blocks += report->reach_of[i].blocks[group];
		if (blocks)
			fprintf(out, "  %s: %s\n", reach_group_words[group],
				reach_group_meanings[group]);
	}
}

/* Returns the number of lines. */
static int write_own_mappings(FILE *out, const struct leak_report *report)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(report->analysis->heaps);

	if (!stats->own_mappings)
		return 0;
	fprintf(out, "Not counted: %" PRIu64 " mapping%s, ", stats->own_mappings,
		quantity_plural(stats->own_mappings));
	fputs(quantity_bytes((double)stats->own_mapped_bytes).text, out);
	fputs(", of the allocator, the loader and the C library\n", out);
	return 1;
}

static int write_verdicts(FILE *out, const struct leak_report *report,
			  const struct summary_report_style *style)
{
	int nr_lines = 0;

	for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++) {
		const struct leak_estimate *estimate = &report->estimate_of[verdict];
		_cleanup_free_ char *bytes = NULL;
		/* Where all time was observed, it is what is listed, exactly. */
		double error = report->in_windows ? sqrt(estimate->blocks_variance) : 0;
		double bytes_error = report->in_windows ? sqrt(estimate->bytes_variance) : 0;
		uint64_t nr = (uint64_t)llround(quantity_estimate(estimate->blocks, error));
		char stacks[24] = "-";
		size_t len;
		FILE *stream;

		if (!report->sites_of[verdict] && !report->blocks_of[verdict])
			continue;
		/* The youngest blocks of a leak are not-yet: no stack need have that verdict. */
		if (report->sites_of[verdict])
			snprintf(stacks, sizeof(stacks), "%" PRIu64, report->sites_of[verdict]);
		stream = open_memstream(&bytes, &len);
		if (stream) {
			fputs(quantity_bytes_estimate(estimate->bytes, bytes_error).text, stream);
			fclose(stream);
		}
		fputs(nr_lines ? "  " : "\n  ", out);
		colour_begin(out, style->colour, leak_words_colour(verdict));
		fprintf(out, "%-8s", verdict_name(verdict));
		colour_end(out, style->colour, leak_words_colour(verdict));
		fprintf(out, " %7s stack%s %8" PRIu64 " block%s %10s  %s\n", stacks,
			quantity_word(report->sites_of[verdict], " ", "s"), nr,
			quantity_word(nr, " ", "s"), bytes ? bytes : "",
			leak_words_meaning(verdict));
		nr_lines += nr_lines ? 1 : 2;
	}
	return nr_lines;
}

/* Heaps of one kind have groups that those of the other have not (reach_class.h). */
static bool has_column(const struct leak_report *report, enum reach_group group)
{
	bool is_traced = group == REACH_GROUP_NO_HOLDER || group == REACH_GROUP_POINTED;

	for (int i = 0; i < VERDICT_NR; i++)
		if (report->reach_of[i].blocks[group])
			return true;
	return group >= REACH_GROUP_UNDECIDED ||
	       is_traced == (report->worst == REACH_GROUP_NO_HOLDER);
}

/* The same with a scan: what it has said of each verdict's blocks. */
static void write_proof(FILE *out, const struct leak_report *report,
			const struct summary_report_style *style)
{
	if (!report->held_blocks)
		return;
	fprintf(out, "\n  %8s", "");
	for (enum reach_group group = 0; group < REACH_NR_PROOFS; group++)
		if (has_column(report, group))
			fprintf(out, "%*s", PROOF_COLUMNS, reach_group_words[group]);
	fputc('\n', out);
	for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++) {
		const struct leak_reach *reach = &report->reach_of[verdict];

		if (!report->blocks_of[verdict])
			continue;
		fputs("  ", out);
		colour_begin(out, style->colour, leak_words_colour(verdict));
		fprintf(out, "%-8s", verdict_name(verdict));
		colour_end(out, style->colour, leak_words_colour(verdict));
		for (enum reach_group group = 0; group < REACH_NR_PROOFS; group++) {
			char cell[64] = "-";

			if (!has_column(report, group))
				continue;
			if (reach->blocks[group])
				snprintf(cell, sizeof(cell), "%" PRIu64 " %9s",
					 reach->blocks[group],
					 quantity_bytes((double)reach->bytes[group]).text);
			fprintf(out, " %*s", PROOF_COLUMNS - 1, cell);
		}
		fputc('\n', out);
	}
	write_limits(out, report);
}

static int write_finding(FILE *out, const struct audit_finding *finding)
{
	if (!finding->count)
		return 0;
	fprintf(out, "! %s: %" PRIu64 "; %s\n", finding->what, finding->count, finding->effect);
	return 1;
}

/* Reasons to doubt the result. Returns the number of lines. */
static int write_doubts(FILE *out, const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	struct audit_finding findings[AUDIT_NR_KINDS];
	struct input_advice advice;
	int nr_lines = 0;

	pairing_audit(analysis, findings);
	if (analysis->lost && ++nr_lines)
		fprintf(out, "! %" PRIu64 " event%s lost: some of these leaks may be false; %s\n",
			analysis->lost, quantity_word(analysis->lost, " was", "s were"),
			input_advice_on_losses(analysis));
	if (analysis->unguarded_tasks && ++nr_lines)
		fprintf(out,
			"! events may be missing: all results are doubtful; " INPUT_ADVICE_UNGUARDED
			"\n");
	else if (analysis->may_miss && ++nr_lines)
		fputs("! " INPUT_ADVICE_FIRST_CALLS "\n", out);
	if (analysis->input.truncated && ++nr_lines)
		fputs("! the recording was cut off: its end is missing\n", out);
	if (analysis_unwind_failures(analysis) && ++nr_lines)
		fprintf(out, "! %" PRIu64 " stack%s early: %s\n",
			analysis_unwind_failures(analysis),
			quantity_word(analysis_unwind_failures(analysis), " ends", "s end"),
			input_advice_on_short_stacks(analysis));
	if (report->verdicts.is_too_short && report->held_blocks && ++nr_lines)
		fputs("! too short to tell a leak by age or growth: the program worked for less "
		      "than 0.2 s, as one that starts does\n",
		      out);
	nr_lines += write_finding(out, &findings[AUDIT_UNSEEN_FREES]);
	nr_lines += write_finding(out, &findings[AUDIT_RETURN_LATER]);
	if (report->anomalies[ANOMALY_MISMATCH] && ++nr_lines)
		fprintf(out,
			"! %" PRIu64 " release%s by another family than the allocation, such as "
			"new[] and delete: omit --summary to see both stacks\n",
			report->anomalies[ANOMALY_MISMATCH],
			quantity_plural(report->anomalies[ANOMALY_MISMATCH]));
	input_advice_find(report, &advice);
	for (size_t i = 0; i < advice.nr; i++, nr_lines++) {
		fputs("! ", out);
		diag_print_escaped(out, advice.lines[i], NULL);
		fputc('\n', out);
	}
	return nr_lines;
}

/* All but the rows. Returns 0 or -ENOMEM. */
static int write_overview(FILE *out, const struct leak_report *report,
			  const struct summary_report_style *style)
{
	_cleanup_free_ struct leak_process *processes = NULL, *kinds = NULL;
	struct holders holders = {0};
	int err = leak_processes_find(report, &processes, &holders.nr);

	if (!err && holders.nr > 1)
		err = leak_kinds_find(report, &kinds, &holders.nr_kinds);
	if (err)
		return err;
	holders.list = processes;
	holders.kinds = kinds;
	write_head(out, report, &holders);
	memory_report_write(out, report);
	write_reach(out, report);
	write_own_mappings(out, report);
	colour_begin(out, style->colour, COLOUR_YELLOW);
	write_doubts(out, report);
	colour_end(out, style->colour, COLOUR_YELLOW);
	if (report->reach)
		write_proof(out, report, style);
	else
		write_verdicts(out, report, style);
	write_processes(out, report, &holders);
	if (report->nr_causes)
		fputc('\n', out);
	return 0;
}

/* Writes the causes for which there is room after @nr_lines. Returns 0 or -ENOMEM. */
static int write_rows(FILE *out, const struct leak_report *report, int nr_lines,
		      const struct summary_report_style *style)
{
	size_t nr_rows;
	int err = summary_rows_write(out, report, SCREEN_LINES - 2 - nr_lines, style, &nr_rows);

	if (report->nr_causes > nr_rows)
		fprintf(out, "and %zu more%s\n", report->nr_causes - nr_rows,
			style->is_live ? "" : " (--limit N)");
	if (nr_rows && style->is_live)
		fputs("A recording (leakrec -o) would have the stacks and each block.\n", out);
	else if (nr_rows)
		fputs("Omit --summary to see full stacks and each block; use leakfollow --size N "
		      "to trace blocks of one size.\n",
		      out);
	return err;
}

int summary_report_write(FILE *out, const struct leak_report *report,
			 const struct summary_report_style *style)
{
	int nr_lines = 0, err = 0;

	for (int part = 0; part < 2 && !err; part++) {
		_cleanup_free_ char *text = NULL;
		size_t size;
		FILE *stream = open_memstream(&text, &size);

		if (!stream)
			return -ENOMEM;
		err = part ? write_rows(stream, report, nr_lines, style)
			   : write_overview(stream, report, style);
		if (fclose(stream))
			return -ENOMEM;
		nr_lines = wrapped_text_write(out, text, style->columns);
	}
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
