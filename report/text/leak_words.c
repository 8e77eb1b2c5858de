/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leak_words.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "parser/analysis/counted_calls.h"
#include "parser/verdicts/pairing_audit.h"
#include "parser/windows/observed_time.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SLOWED		 0.9 /* a slower program's pace is mentioned */

#define MAX_COUNTED_NAME 40 /* characters of a function; a longer one would fill a line */

void leak_words_moment(FILE *out, const struct analysis *analysis)
{
	uint64_t at_ns = analysis->ticks.at_ns ? analysis->ticks.at_ns : analysis->until_ns;

	if (analysis->until_sequence) {
		fputs("at the peak", out);
	} else if (at_ns) {
		fputs("after ", out);
		fputs(quantity_duration((double)at_ns / 1e9).text, out);
	} else {
		fputs("at the end", out);
	}
}

bool leak_words_know_certain(const struct leak_report *report)
{
	/* Looks from outside prove nothing. */
	if (report->in_windows || !report->held_blocks)
		return false;
	return report->firm_blocks == report->held_blocks
		       ? pairing_audit_is_clean(report->analysis)
		       : !pairing_audit_spoils_all(report->analysis);
}

void leak_words_certain(FILE *out, const struct leak_report *report)
{
	if (!leak_words_know_certain(report))
		return;
	fputs(", ", out);
	if (report->firm_blocks < report->held_blocks)
		fprintf(out, "%" PRIu64 " of them ", report->firm_blocks);
	fputs("certainly not freed", out);
}

/* True if allocations may have given blocks that the tracker does not know. */
static bool misses_blocks(const struct heap_tracker_stats *stats)
{
	return stats->entries[ENTRY_JUMPED_OVER] || stats->entries[ENTRY_PUSHED_OUT] ||
	       stats->blocks_unlocated || (!stats->allocations && stats->entries_without_return);
}

const char *leak_words_unrecorded(const struct analysis *analysis)
{
	if (analysis->lost)
		return "nothing was recorded: events were lost";
	if (analysis->input.command.partial)
		return "nothing was recorded: none of the chosen calls was made";
	if (analysis->input.command.has_sizes)
		return "nothing was recorded: no block of these sizes was allocated";
	return "nothing was recorded: no probe was hit";
}

const char *leak_words_nothing(const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	if (report->nr_held)
		return "nothing that the options select is held";
	if (!stats->events && !analysis->was_enough)
		return leak_words_unrecorded(analysis);
	if (report->in_windows)
		return "no block is known to be held; not all were observed";
	if (analysis->was_enough)
		return "no recorded block is held at that moment";
	if (!pairing_audit_is_clean(analysis) || analysis->may_miss ||
	    analysis->segments.first > 1 || analysis->input.command.has_sizes ||
	    stats->blocks_dropped_by_exec || misses_blocks(stats))
		return "no recorded block is held";
	return "nothing leaked: all blocks that were allocated during the recording have been "
	       "freed";
}

void leak_words_certainty(FILE *out, unsigned int doubts)
{
	char separator = ':';

	fputs(doubts ? "doubtful" : "firm", out);
	for (unsigned int i = 0; i < DOUBT_NR; i++) {
		if (!(doubts & 1u << i))
			continue;
		fprintf(out, "%c%s", separator, doubt_name(i));
		separator = ',';
	}
}

const char *leak_words_meaning(enum verdict verdict)
{
	static const char *const meanings[VERDICT_NR] = {
		[VERDICT_GROWTH] = "keep accumulating",
		[VERDICT_OVERDUE] = "held far longer than others of their stack",
		[VERDICT_BURST] = "allocated all at once and kept",
		[VERDICT_UNCLEAR] = "too few or too recent to tell",
		[VERDICT_PLATEAU] = "grew for a while, then stopped: perhaps a full pool or cache",
		[VERDICT_STARTUP] = "allocated at the start and kept",
		[VERDICT_AT_EXIT] = "held by a process that exited early",
		[VERDICT_NOT_YET] = "no older than others of their stack",
	};

	return meanings[verdict];
}

static const char *unit_of(const struct resource_kind *kind)
{
	if (!kind)
		return "block";
	if (kind->names_one)
		return kind->name;
	return kind->counts_refs ? "object" : "handle";
}

void leak_words_number(FILE *out, const struct resource_kind *kind, uint64_t nr)
{
	bool has_name = kind && !kind->names_one;

	fprintf(out, "%" PRIu64 " %s%s%s%s", nr, has_name ? kind->name : "", has_name ? " " : "",
		unit_of(kind), quantity_plural(nr));
}

void leak_words_held(FILE *out, const struct resource_kind *kind, uint64_t blocks, uint64_t bytes)
{
	leak_words_number(out, kind, blocks);
	if (kind && !bytes)
		return;
	fputs(", ", out);
	fputs(quantity_bytes((double)bytes).text, out);
}

void leak_words_estimated(FILE *out, const struct resource_kind *kind,
			  const struct leak_estimate *estimate)
{
	double error = sqrt(estimate->blocks_variance);
	double blocks = round(quantity_estimate(estimate->blocks, error));
	double shown_error = round(quantity_estimate(error, error));

	if (estimate->blocks + error < 1) {
		fprintf(out, "less than one %s at a time", unit_of(kind));
	} else {
		fprintf(out, "about %.0f ", blocks);
		/* What is often there for a moment is known to less than a block: no "+-0". */
		if (shown_error > 0)
			fprintf(out, "+-%.0f ", shown_error);
		fprintf(out, "%s%s", unit_of(kind), shown_error > 0 || blocks != 1 ? "s" : "");
	}
}

void leak_words_estimate(FILE *out, const struct resource_kind *kind,
			 const struct leak_estimate *estimate)
{
	leak_words_estimated(out, kind, estimate);
	fputs(", ", out);
	fputs(quantity_bytes_estimate(estimate->bytes, sqrt(estimate->bytes_variance)).text, out);
}

/* Numbers are shown with two decimals, bytes with none; each needs a digit. */
static struct quantity_period period_of(const struct growth_rate *rate)
{
	double blocks = rate->blocks_per_s / 0.1;

	return quantity_period_for(rate->bytes_per_s > 0 ? fmin(blocks, rate->bytes_per_s)
							 : blocks);
}

/* An error that is less than the last digit of what it belongs to. "+-0" would call that exact. */
static bool is_below_digits(const struct quantity_text *error)
{
	return !strpbrk(error->text, "123456789");
}

void leak_words_rate(FILE *out, const struct resource_kind *kind, const struct growth_rate *rate)
{
	struct quantity_period period = period_of(rate);
	double error = rate->blocks_error * period.length_s;
	struct quantity_text shown_error = quantity_number_estimate(error, error);

	fputc('+', out);
	fputs(quantity_number_estimate(rate->blocks_per_s * period.length_s, error).text, out);
	if (!is_below_digits(&shown_error))
		fprintf(out, " +-%s", shown_error.text);
	fprintf(out, " %ss/%s", unit_of(kind), period.name);
	if (kind && rate->bytes_per_s <= 0)
		return;
	fputs(", +", out);
	error = rate->bytes_error * period.length_s;
	shown_error = quantity_bytes_estimate(error, error);
	fputs(quantity_bytes_estimate(rate->bytes_per_s * period.length_s, error).text, out);
	fprintf(out, "/%s", period.name);
	if (!is_below_digits(&shown_error))
		fprintf(out, " +-%s/%s", shown_error.text, period.name);
}

/* Of the ends, only a part was observed; the counts are no shares. */
static void write_windowed_lifetimes(FILE *out, const struct site_verdict *verdict)
{
	fprintf(out, "%" PRIu64 " seen", verdict->site->allocations);
	if (verdict->stays >= 0)
		fprintf(out, ", about %.3g %% stay", 100 * verdict->stays);
	else
		fputs(verdict->site->frees ? ", what share stays is not known"
					   : ", none of them freed",
		      out);
	if (verdict->median_s >= 0) {
		fputs("; of the others half freed within ", out);
		fputs(quantity_duration(verdict->median_s).text, out);
		fputs(", 99 % within ", out);
		fputs(quantity_duration(verdict->p99_s).text, out);
	}
	fputs("; seen for up to ", out);
	fputs(quantity_duration(verdict->oldest_s).text, out);
}

void leak_words_lifetimes(FILE *out, const struct resource_kind *kind,
			  const struct site_verdict *verdict)
{
	const struct site *site = verdict->site;
	const char *freed = kind ? "released" : "freed";

	if (verdict->in_windows) {
		write_windowed_lifetimes(out, verdict);
		return;
	}
	if (site->frees) {
		fprintf(out, "%" PRIu64 " of %" PRIu64 " %s, half within ", site->frees,
			site->allocations, freed);
		fputs(quantity_duration(verdict->median_s).text, out);
		fputs(", 99 % within ", out);
		fputs(quantity_duration(verdict->p99_s).text, out);
	} else {
		fprintf(out, "none of %" PRIu64 " %s", site->allocations, freed);
	}
	fputs("; the oldest is ", out);
	fputs(quantity_duration(verdict->oldest_s).text, out);
	fputs(" old", out);
	if (verdict->exited)
		fputs(" (its process has exited)", out);
}

void leak_words_counted(FILE *out, const struct leak_report *report,
			const struct site_verdict *verdict)
{
	struct stack_frame frame = {0};

	if (!verdict->counted_call)
		return;
	fputs("; all calls of ", out);
	if (stack_store_frame(report->analysis->stacks, verdict->counted_call, COUNTED_CALL_FRAME,
			      &frame) ||
	    !frame.function || strlen(frame.function) > MAX_COUNTED_NAME)
		fputs("a function", out);
	else
		diag_print_escaped(out, frame.function, NULL);
	fputs(" counted", out);
}

enum colour leak_words_colour(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_GROWTH:
		return COLOUR_RED;
	case VERDICT_OVERDUE:
	case VERDICT_BURST:
		return COLOUR_YELLOW;
	case VERDICT_UNCLEAR:
		return COLOUR_NONE;
	default:
		return COLOUR_DIM;
	}
}

void leak_words_pace(const struct leak_report *report, char words[LEAK_WORDS_PACE])
{
	const struct observed_time *time = heap_tracker_observed(report->analysis->heaps);
	double paced_ns = (double)observed_time_paced_before(time, report->analysis->end_ns);
	double observed_ns = (double)observed_time_before(time, report->analysis->end_ns);

	*words = '\0';
	if (!time->has_paces)
		snprintf(words, LEAK_WORDS_PACE,
			 "If the program is slower while it is observed, it holds more, and leaks "
			 "faster");
	else if (paced_ns < SLOWED * observed_ns)
		snprintf(words, LEAK_WORDS_PACE,
			 "Windows show about %.1g of the program's pace: probes slow it down, or "
			 "not all of its processes are probed at once; the estimates allow for "
			 "that",
			 paced_ns / observed_ns);
}

void leak_words_process(FILE *out, const struct leak_report *report, pid_t pid, pid_t tid)
{
	diag_print_escaped(out, heap_tracker_process_name(report->analysis->heaps, pid, tid), NULL);
	fprintf(out, " (%d)", pid);
}

void leak_words_reach(FILE *out, const struct leak_report *report, const struct leak_reach *reach,
		      uint64_t blocks)
{
	bool is_later = reach_is_later(report->analysis->reach), is_first = true;

	for (enum reach_group group = 0; group < REACH_NR_GROUPS && report->reach; group++) {
		if (!reach->blocks[group])
			continue;
		fprintf(out, "%s %" PRIu64, is_first ? ";" : ",", reach->blocks[group]);
		if (is_first)
			fprintf(out, " of %" PRIu64, blocks);
		fprintf(out, " %s",
			is_later && group == REACH_GROUP_LOST ? "lost now"
							      : reach_group_words[group]);
		if (is_later)
			fprintf(out, " (%s)", quantity_bytes((double)reach->bytes[group]).text);
		is_first = false;
	}
}

void leak_words_reach_keys(FILE *out, const struct leak_report *report,
			   const struct leak_reach *reach)
{
	if (report->reach)
		fprintf(out,
			" lost_blocks=%" PRIu64 " lost_bytes=%" PRIu64 " reached_blocks=%" PRIu64,
			reach->blocks[REACH_GROUP_LOST], reach->bytes[REACH_GROUP_LOST],
			reach->blocks[REACH_GROUP_REACHABLE]);
	if (reach->blocks[REACH_GROUP_NO_HOLDER] || reach->blocks[REACH_GROUP_POINTED])
		fprintf(out,
			" no_holder_blocks=%" PRIu64 " no_holder_bytes=%" PRIu64
			" pointed_blocks=%" PRIu64,
			reach->blocks[REACH_GROUP_NO_HOLDER], reach->bytes[REACH_GROUP_NO_HOLDER],
			reach->blocks[REACH_GROUP_POINTED]);
	if (reach_is_later(report->analysis->reach))
		fprintf(out, " gone_blocks=%" PRIu64, reach->blocks[REACH_GROUP_GONE]);
}

void leak_words_unseen(FILE *out, const struct reach *reach)
{
	const char *what;
	pid_t pid;

	for (size_t i = 0; (what = reach_unseen(reach, i, &pid)); i++) {
		fputs("# not seen: ", out);
		diag_print_escaped(out, what, NULL);
		fprintf(out,
			" of process %d; a block whose only pointer is in there counts as held by nothing\n",
			(int)pid);
	}
}
