/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/summary_report.h"

#include "common/colour.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "parser/verdicts/leak_processes.h"
#include "parser/verdicts/pairing_audit.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"
#include "report/text/resource_report.h"
#include "report/text/stack_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_LINES  24
#define LINES_A_SITE  3
#define MIN_SITES     3
#define NR_BARS	      16
#define MAX_HISTORY   6	   /* stacks that changed a reference count */
#define MAX_PROCESSES 5	   /* listed one by one */
#define MAX_TWINS     1000 /* among so many in a row, none looks like another */

/* The process, the duration and the amounts. Returns the number of lines. */
static int write_head(FILE *out, const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	double length_s = analysis->end_ns > analysis->start_ns
				  ? (double)(analysis->end_ns - analysis->start_ns) / 1e9
				  : 0;

	if (report->nr_sites) {
		const struct site_verdict *verdict = &report->verdicts.sites[report->sites[0].site];
		const struct heap_op *op =
			&report->held[report->verdicts.order[verdict->first]].allocated;

		diag_print_escaped(
			out, heap_tracker_process_name(analysis->heaps, op->pid, op->tid), NULL);
		fprintf(out, " (%d): ", op->pid);
	}
	fputs(quantity_duration(length_s).text, out);
	fprintf(out,
		" recorded, %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64 " events lost\n",
		stats->allocations, stats->frees, analysis->lost);
	if (!stats->events) {
		fputs("Nothing was recorded: no probe was hit\n", out);
		return 2;
	}
	if (!report->held_blocks) {
		fputs(resource_report_has_any(report) ? "No memory" : "Nothing", out);
	} else {
		leak_words_held(out, NULL, report->held_blocks, report->held_bytes);
		fprintf(out, " in %" PRIu64 " stack%s,", report->memory_sites,
			quantity_plural(report->memory_sites));
	}
	fputs(" held ", out);
	leak_words_moment(out, analysis);
	leak_words_certain(out, report);
	if (report->suppressed_blocks)
		fprintf(out, "; %" PRIu64 " suppressed", report->suppressed_blocks);
	if (leak_report_is_narrowed(report) || report->options->size)
		fputs(" (filtered)", out);
	fputc('\n', out);
	return 2 + resource_report_write_summary(out, report);
}

static void write_process_name(FILE *out, const struct leak_report *report,
			       const struct leak_process *process)
{
	diag_print_escaped(
		out, heap_tracker_process_name(report->analysis->heaps, process->pid, process->tid),
		NULL);
	fprintf(out, " (%d)", process->pid);
}

/* The processes that leak most, if there are several. Returns the number of lines. */
static int write_processes(FILE *out, const struct leak_report *report)
{
	_cleanup_free_ struct leak_process *processes = NULL;
	int nr_lines = 0;
	size_t nr;

	if (leak_processes_find(report, &processes, &nr) || nr < 2)
		return 0;
	fprintf(out, "\n  %zu processes hold blocks; worst leakers first:\n", nr);
	for (size_t i = 0; i < nr && i < MAX_PROCESSES; i++, nr_lines++) {
		fputs("  ", out);
		write_process_name(out, report, &processes[i]);
		fprintf(out, ": %" PRIu64 " block%s, ", processes[i].leaked_blocks,
			quantity_plural(processes[i].leaked_blocks));
		fputs(quantity_bytes((double)processes[i].leaked_bytes).text, out);
		fprintf(out, ", of %" PRIu64 " held, ", processes[i].blocks);
		fputs(quantity_bytes((double)processes[i].bytes).text, out);
		fputc('\n', out);
	}
	if (nr > MAX_PROCESSES)
		fprintf(out, "  and %zu more\n", nr - MAX_PROCESSES);
	return nr_lines + 2 + (nr > MAX_PROCESSES);
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

/* Certain leaks stand out; blocks that are no leak are dim. */
static enum colour colour_of(enum verdict verdict)
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

static int write_verdicts(FILE *out, const struct leak_report *report,
			  const struct summary_report_style *style)
{
	int nr_lines = 0;

	for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++) {
		_cleanup_free_ char *bytes = NULL;
		size_t len;
		FILE *stream;

		if (!report->sites_of[verdict])
			continue;
		stream = open_memstream(&bytes, &len);
		if (stream) {
			fputs(quantity_bytes((double)report->bytes_of[verdict]).text, stream);
			fclose(stream);
		}
		fputs(nr_lines ? "  " : "\n  ", out);
		colour_begin(out, style->colour, colour_of(verdict));
		fprintf(out, "%-8s", verdict_name(verdict));
		colour_end(out, style->colour, colour_of(verdict));
		fprintf(out, " %7" PRIu64 " stack%s %8" PRIu64 " block%s %10s  %s\n",
			report->sites_of[verdict],
			quantity_word(report->sites_of[verdict], " ", "s"),
			report->blocks_of[verdict],
			quantity_word(report->blocks_of[verdict], " ", "s"), bytes ? bytes : "",
			leak_words_meaning(verdict));
		nr_lines += nr_lines ? 1 : 2;
	}
	return nr_lines;
}

/* The held blocks over time, as a row of bars. */
static void write_bars(FILE *out, const struct leak_report *report, const struct site *site,
		       bool utf8)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const struct analysis *analysis = report->analysis;
	const struct site_history *history = site->history;
	uint64_t origin_ns = site_stats_origin(heap_tracker_sites(analysis->heaps));
	int64_t held[SITE_PERIODS] = {0}, most = 1, nr = 0;
	size_t nr_periods;

	if (!history || analysis->end_ns <= origin_ns)
		return;
	nr_periods = ((analysis->end_ns - origin_ns) >> history->shift) + 1;
	if (nr_periods > SITE_PERIODS)
		nr_periods = SITE_PERIODS;
	for (size_t i = 0; i < nr_periods; i++) {
		nr += (int64_t)history->periods[i].allocated - (int64_t)history->periods[i].ended;
		held[i] = nr > 0 ? nr : 0;
		if (held[i] > most)
			most = held[i];
	}
	fputs("  [", out);
	for (size_t i = 0; i < NR_BARS; i++) {
		int64_t value = held[((i + 1) * nr_periods - 1) / NR_BARS];

		if (value == 0)
			fputc(utf8 ? ' ' : '.', out);
		else if (utf8)
			fputs(bars[value * 7 / most], out);
		else
			fputc((int)('1' + value * 8 / most), out);
	}
	fputc(']', out);
}

/* The callers from the user's frame outwards. */
static int write_path(FILE *out, const struct analysis *analysis, struct named_stack *stack,
		      uint32_t stack_id, const struct probe_schema *schema)
{
	int err = named_stack_load(stack, analysis->stacks, stack_id);

	if (!err)
		stack_path_write(out, stack, named_stack_user_frame(stack, schema->function));
	return err;
}

/* The stacks that added and dropped references to a site's objects. */
static int write_references(FILE *out, const struct leak_report *report,
			    const struct leak_site *site, struct named_stack *stack)
{
	_cleanup_free_ struct ref_history *history = NULL;
	size_t nr, nr_shown;
	int err = resource_report_merge_histories(report, site, &history, &nr);

	if (err)
		return err;
	nr_shown = nr < MAX_HISTORY ? nr : MAX_HISTORY;
	for (size_t i = 0; i < nr_shown && !err; i++) {
		fprintf(out, "   +%" PRIu64 " -%" PRIu64 " ", history[i].refs, history[i].unrefs);
		diag_print_escaped(out, history[i].schema->function, NULL);
		fputs(" < ", out);
		err = write_path(out, report->analysis, stack, history[i].stack_id,
				 history[i].schema);
		fputc('\n', out);
	}
	if (nr > nr_shown)
		fprintf(out, "   and from %zu more stacks\n", nr - nr_shown);
	return err;
}

static const struct site_verdict *verdict_of(const struct leak_report *report,
					     const struct leak_site *site)
{
	return &report->verdicts.sites[site->site];
}

/* Loads the path of a listed site into @stack. Returns 0 or -ENOMEM. */
static int load_path(const struct leak_report *report, const struct leak_site *site,
		     struct named_stack *stack, struct stack_path *ret)
{
	const struct site_verdict *verdict = verdict_of(report, site);
	const struct heap_op *op = &report->held[report->verdicts.order[verdict->first]].allocated;
	int err = named_stack_load(stack, report->analysis->stacks, verdict->site->stack_id);

	if (!err)
		*ret = (struct stack_path){stack,
					   named_stack_user_frame(stack, op->schema->function)};
	return err;
}

/* The first listed block of @site by another process than @pid; NULL: there is none. */
static const struct heap_op *other_process(const struct leak_report *report,
					   const struct leak_site *site, pid_t pid)
{
	const struct site_verdict *verdict = verdict_of(report, site);

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		size_t block = report->verdicts.order[verdict->first + i];

		if (report->choices[block] == LEAK_LISTED &&
		    report->held[block].allocated.pid != pid)
			return &report->held[block].allocated;
	}
	return NULL;
}

static bool has_several_processes(const struct leak_report *report)
{
	const struct heap_op *first = NULL;

	for (size_t i = 0; i < report->nr_sites; i++) {
		if (!first)
			first = other_process(report, &report->sites[i], 0);
		if (first && other_process(report, &report->sites[i], first->pid))
			return true;
	}
	return false;
}

/* "  in sort (4242) and others" */
static void write_site_process(FILE *out, const struct leak_report *report,
			       const struct leak_site *site)
{
	const struct heap_op *op = other_process(report, site, 0);

	if (!op)
		return;
	fputs("  in ", out);
	write_process_name(out, report, &(struct leak_process){.pid = op->pid, .tid = op->tid});
	if (other_process(report, site, op->pid))
		fputs(" and others", out);
}

static void write_site(FILE *out, const struct leak_report *report, size_t rank, const char *path,
		       bool has_twin, bool names_process, const struct summary_report_style *style)
{
	const struct leak_site *site = &report->sites[rank - 1];
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	const struct resource_kind *kind = leak_report_kind_of(report, site);

	fprintf(out, "%zu. ", rank);
	colour_begin(out, style->colour, colour_of(verdict->verdict));
	fputs(verdict_name(verdict->verdict), out);
	colour_end(out, style->colour, colour_of(verdict->verdict));
	if (verdict->doubts) {
		fputs(", ", out);
		leak_words_certainty(out, verdict->doubts);
	}
	fputs(": ", out);
	leak_words_held(out, kind, site->blocks, site->bytes);
	if (verdict->has_rate) {
		fputs(", ", out);
		leak_words_rate(out, kind, &verdict->rate);
	}
	write_bars(out, report, verdict->site, style->utf8);
	if (names_process)
		write_site_process(out, report, site);
	fputs("\n   ", out);
	leak_words_lifetimes(out, kind, verdict);
	fprintf(out, "\n   %s", path);
	/* The stacks differ in what no line has room for; the full text has it. */
	if (has_twin)
		fprintf(out, "  (stack %" PRIu32 ")", verdict->site->stack_id);
	fputc('\n', out);
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
		fprintf(out,
			"! %" PRIu64 " events were lost: some of these leaks may be false; %s\n",
			analysis->lost, input_advice_on_losses(analysis));
	if (analysis->unguarded_tasks && ++nr_lines)
		fprintf(out,
			"! events may be missing: all results are doubtful; " INPUT_ADVICE_UNGUARDED
			"\n");
	if (analysis->input.truncated && ++nr_lines)
		fputs("! the recording was cut off: its end is missing\n", out);
	if (analysis_unwind_failures(analysis) && ++nr_lines)
		fprintf(out, "! %" PRIu64 " stacks end early: %s\n",
			analysis_unwind_failures(analysis), input_advice_on_short_stacks(analysis));
	if (findings[AUDIT_UNSEEN_FREES].count && ++nr_lines)
		fprintf(out, "! %" PRIu64 " %s\n", findings[AUDIT_UNSEEN_FREES].count,
			findings[AUDIT_UNSEEN_FREES].what);
	if (findings[AUDIT_RETURN_LATER].count && ++nr_lines)
		fprintf(out, "! %" PRIu64 " %s\n", findings[AUDIT_RETURN_LATER].count,
			findings[AUDIT_RETURN_LATER].what);
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

/* Whether another of the @nr paths looks like that of site @i. */
static bool has_twin(char *const *paths, size_t nr, size_t i)
{
	for (size_t k = 0; k < nr; k++)
		if (k != i && strcmp(paths[i], paths[k]) == 0)
			return true;
	return false;
}

/* Writes @nr sites from index @first on. @stacks has room for as many. Returns 0 or -ENOMEM. */
static int write_batch(FILE *out, const struct leak_report *report, size_t first, size_t nr,
		       struct named_stack *stacks, bool names_process,
		       const struct summary_report_style *style)
{
	struct stack_path paths[MAX_TWINS];
	char **texts = NULL;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++)
		err = load_path(report, &report->sites[first + i], &stacks[i], &paths[i]);
	if (!err)
		err = stack_paths_texts(paths, nr, &stack_path_summary, &texts);
	for (size_t i = 0; i < nr && !err; i++) {
		const struct leak_site *site = &report->sites[first + i];
		const struct resource_kind *kind = leak_report_kind_of(report, site);

		write_site(out, report, first + i + 1, texts[i], has_twin(texts, nr, i),
			   names_process, style);
		if (kind && kind->counts_refs)
			err = write_references(out, report, site, &stacks[i]);
	}
	stack_paths_free(texts, nr);
	return err;
}

/* Returns 0 or -ENOMEM. */
static int write_sites(FILE *out, const struct leak_report *report, size_t nr,
		       const struct summary_report_style *style)
{
	size_t nr_stacks = nr < MAX_TWINS ? nr : MAX_TWINS;
	_cleanup_free_ struct named_stack *stacks = calloc(nr_stacks + 1, sizeof(*stacks));
	struct name_pool *names = name_pool_create();
	int err = stacks && names ? 0 : -ENOMEM;
	bool names_process = has_several_processes(report);

	for (size_t i = 0; i < nr_stacks && !err; i++)
		stacks[i].names = names;
	for (size_t first = 0; first < nr && !err; first += nr_stacks)
		err = write_batch(out, report, first,
				  nr - first < nr_stacks ? nr - first : nr_stacks, stacks,
				  names_process, style);
	for (size_t i = 0; i < nr_stacks && stacks; i++)
		named_stack_deinit(&stacks[i]);
	name_pool_destroy(names);
	return err;
}

int summary_report_write(FILE *out, const struct leak_report *report,
			 const struct summary_report_style *style)
{
	int nr_lines = write_head(out, report), err;
	size_t nr_sites;

	nr_lines += write_own_mappings(out, report);
	colour_begin(out, style->colour, COLOUR_YELLOW);
	nr_lines += write_doubts(out, report);
	colour_end(out, style->colour, COLOUR_YELLOW);
	nr_lines += write_verdicts(out, report, style);
	nr_lines += write_processes(out, report);
	nr_sites = nr_lines + 3 < SCREEN_LINES
			   ? (size_t)(SCREEN_LINES - nr_lines - 3) / LINES_A_SITE
			   : 0;
	if (nr_sites < MIN_SITES)
		nr_sites = MIN_SITES;
	if (report->options->top)
		nr_sites = report->options->top;
	if (nr_sites > report->nr_listed_sites)
		nr_sites = report->nr_listed_sites;
	if (nr_sites)
		fputc('\n', out);
	err = write_sites(out, report, nr_sites, style);
	if (report->nr_sites > nr_sites)
		fprintf(out, "and %zu more stacks (--top N)\n", report->nr_sites - nr_sites);
	if (nr_sites)
		fputs("Omit --summary to see full stacks and each block; use leakfollow --size N "
		      "to trace blocks of one size.\n",
		      out);
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
