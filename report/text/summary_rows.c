/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/summary_rows.h"

#include "common/colour.h"
#include "common/diag.h"
#include "common/scope.h"
#include "parser/statistics/held_bars.h"
#include "report/text/cause_frames.h"
#include "report/text/cause_holder.h"
#include "report/text/cause_parts.h"
#include "report/text/leak_words.h"
#include "report/text/resource_report.h"
#include "report/names/stack_path.h"
#include "report/text/wrapped_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROWS       3
#define NR_BARS	       HELD_BARS_MAX
#define MAX_HISTORY    6    /* stacks that changed a reference count */
#define MAX_TWINS      1000 /* rows that are compared with each other */
#define FEW_COLUMNS    100
#define INDENTATION    3
#define HOLDER_COLUMNS 80
/* A cause with this share of what is held is shown even where others come before it. */
#define LARGE_SHARE 0.2

/* What a row shows: a cause, and the stack that it is named after. */
struct row {
	const struct leak_cause *cause;
	struct cause_frames frames;
	struct cause_parts parts;
};

static const struct leak_site *first_site(const struct leak_report *report, const struct row *row)
{
	return &report->sites_by_cause[row->cause->first];
}

static const struct site_verdict *verdict_of(const struct leak_report *report,
					     const struct leak_site *site)
{
	return &report->verdicts.sites[site->site];
}

/* The held blocks over time, as a row of bars. */
static void write_bars(FILE *out, const struct leak_report *report, const struct site *site,
		       bool utf8)
{
	const struct analysis *analysis = report->analysis;
	uint16_t heights[NR_BARS];

	if (!held_bars(site, site_stats_origin(heap_tracker_sites(analysis->heaps)),
		       analysis->end_ns, heights, NR_BARS))
		return;
	fputs("  [", out);
	for (size_t i = 0; i < NR_BARS; i++)
		fputs(held_bar_text(heights[i], utf8), out);
	fputc(']', out);
}

/* --- paths --- */

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

/* If all ways lead to one function inside, the row is named after that. */
static void name_after_only_function(struct row *row)
{
	const char *name = NULL;

	if (row->frames.inner != SIZE_MAX)
		name = cause_parts_only_function(&row->parts);
	for (size_t i = row->frames.inner; name && i >= row->frames.user; i--) {
		if (row->frames.stack.frames[i].name == name)
			row->frames.first = i;
		if (!i)
			break;
	}
}

static int load_row(const struct leak_report *report, struct row *row)
{
	int err = cause_frames_load(&row->frames, report, row->cause, first_site(report, row));

	if (!err && row->cause->nr > 1)
		err = cause_parts_find(&row->parts, report, row->cause, &row->frames.stack);
	if (!err)
		name_after_only_function(row);
	return err;
}

static void deinit_row(struct row *row)
{
	named_stack_deinit(&row->frames.stack);
	cause_parts_deinit(&row->parts);
}

/* --- processes --- */

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
static void write_process(FILE *out, const struct leak_report *report, const struct row *row)
{
	const struct heap_op *op = other_process(report, first_site(report, row), 0);
	bool has_others = false;

	if (!op)
		return;
	for (size_t i = 0; i < row->cause->nr && !has_others; i++)
		has_others = other_process(report, &report->sites_by_cause[row->cause->first + i],
					   op->pid);
	fputs("  in ", out);
	leak_words_process(out, report, op->pid, op->tid);
	if (has_others)
		fputs(" and others", out);
}

/* --- holders --- */

static struct cause_holder holder_of(const struct leak_report *report,
				     const struct leak_cause *cause)
{
	return cause_holder_of_most(report, &report->sites_by_cause[cause->first], cause->nr);
}

/* "   held by query_cache (server)", or "pointed to by", in one line. Returns 0 or -ENOMEM. */
static int write_holder(FILE *out, const struct leak_report *report, const struct leak_cause *cause)
{
	static const char others[] = " and others";
	const char *head = report->worst == REACH_GROUP_LOST ? "   held by " : "   pointed to by ";
	struct cause_holder holder = holder_of(report, cause);
	size_t room = HOLDER_COLUMNS - strlen(head) - (holder.has_others ? strlen(others) : 0);
	_cleanup_free_ char *name = NULL;
	size_t len;
	FILE *stream;

	if (!holder.name)
		return 0;
	stream = open_memstream(&name, &len);
	if (!stream)
		return -ENOMEM;
	diag_print_escaped(stream, holder.name, NULL);
	if (fclose(stream))
		return -ENOMEM;
	fputs(head, out);
	if (wrapped_text_columns(name) <= room)
		fputs(name, out);
	else
		fprintf(out, "%.*s...", (int)wrapped_text_bytes(name, room - 3), name);
	fputs(holder.has_others ? others : "", out);
	fputc('\n', out);
	return 0;
}

/* --- rows --- */

static void write_row(FILE *out, const struct leak_report *report, const struct row *row,
		      const char *path, bool has_twin, bool names_process,
		      const struct summary_report_style *style)
{
	const struct leak_cause *cause = row->cause;
	const struct site_verdict *verdict = &report->verdicts.causes[cause->cause].verdict;
	const struct resource_kind *kind = leak_report_kind_of(report, first_site(report, row));

	fprintf(out, "%zu. ", (size_t)(cause - report->causes) + 1);
	colour_begin(out, style->colour, leak_words_colour(verdict->verdict));
	fputs(verdict_name(verdict->verdict), out);
	colour_end(out, style->colour, leak_words_colour(verdict->verdict));
	/* The head says that all of a recording in windows is unobserved. */
	if (verdict->doubts & ~(unsigned int)DOUBT_UNOBSERVED) {
		fputs(", ", out);
		leak_words_certainty(out, verdict->doubts);
	}
	fputs(": ", out);
	if (report->in_windows)
		leak_words_estimate(out, kind, &cause->estimate);
	else
		leak_words_held(out, kind, cause->blocks, cause->bytes);
	if (cause->nr > 1)
		fprintf(out, " in %zu stacks", cause->nr);
	if (verdict->has_rate) {
		fputs(", ", out);
		leak_words_rate(out, kind, &verdict->rate);
	}
	if (!report->in_windows)
		write_bars(out, report, verdict->site, style->utf8);
	if (names_process)
		write_process(out, report, row);
	fputs("\n   ", out);
	leak_words_lifetimes(out, kind, verdict);
	leak_words_counted(out, report, verdict);
	if (!kind)
		leak_words_reach(out, report, &cause->reach, cause->blocks);
	fprintf(out, "\n   %s", path);
	/* No line has room for the difference between these stacks; the full text shows it. */
	if (has_twin)
		fprintf(out, "  (stack %" PRIu32 ")",
			verdict_of(report, first_site(report, row))->site->stack_id);
	if (row->parts.nr > 1) {
		fputs("\n   via ", out);
		cause_parts_write(out, &row->parts);
	}
	fputc('\n', out);
}

/* Whether another of the @nr paths looks like that of row @i. */
static bool has_twin(char *const *paths, size_t nr, size_t i)
{
	for (size_t k = 0; k < nr; k++)
		if (k != i && strcmp(paths[i], paths[k]) == 0)
			return true;
	return false;
}

/* Writes @nr rows, at most MAX_TWINS. Returns 0 or -ENOMEM. */
static int write_batch(FILE *out, const struct leak_report *report, struct row *rows, size_t nr,
		       bool names_process, const struct summary_report_style *style)
{
	struct stack_path_style path_style = stack_path_summary;
	struct stack_path paths[MAX_TWINS];
	char **texts = NULL;
	int err = 0;

	if (style->columns && path_style.columns + INDENTATION > style->columns)
		path_style.columns =
			style->columns > INDENTATION ? style->columns - INDENTATION : 1;
	for (size_t i = 0; i < nr && !err; i++) {
		err = load_row(report, &rows[i]);
		paths[i] = (struct stack_path){&rows[i].frames.stack, rows[i].frames.first};
	}
	if (!err)
		err = stack_paths_texts(paths, nr, &path_style, &texts);
	for (size_t i = 0; i < nr && !err; i++) {
		const struct leak_site *site = first_site(report, &rows[i]);
		const struct resource_kind *kind = leak_report_kind_of(report, site);

		write_row(out, report, &rows[i], texts[i], has_twin(texts, nr, i), names_process,
			  style);
		err = write_holder(out, report, rows[i].cause);
		if (!err && kind && kind->counts_refs)
			err = write_references(out, report, site, &rows[i].frames.stack);
	}
	stack_paths_free(texts, nr);
	return err;
}

/* With its first line broken where there are few columns. */
static int nr_lines_of(const struct leak_report *report, const struct leak_cause *cause,
		       const struct summary_report_style *style)
{
	return (cause->nr > 1 ? 4 : 3) + (holder_of(report, cause).name != NULL) +
	       (style->columns && style->columns < FEW_COLUMNS);
}

static bool is_growth(const struct leak_report *report, const struct leak_cause *cause)
{
	return report->verdicts.causes[cause->cause].verdict.verdict == VERDICT_GROWTH;
}

static size_t nr_that_fit(const struct leak_report *report, int nr_lines,
			  const struct summary_report_style *style)
{
	size_t nr = 0;

	if (report->options->limit)
		return report->options->limit < report->nr_causes ? report->options->limit
								  : report->nr_causes;
	for (; nr < report->nr_causes; nr++) {
		int needed = nr_lines_of(report, &report->causes[nr], style);

		if (nr >= MIN_ROWS && nr_lines < needed)
			break;
		nr_lines -= needed;
	}
	/* Nobody sees where a pipe or a file ends: it goes on to the last one that grows. */
	for (size_t i = nr; !style->columns && i < report->nr_causes; i++)
		if (is_growth(report, &report->causes[i]))
			nr = i + 1;
	return nr;
}

/* The cause to show in place of the last of @nr rows. */
static size_t last_row(const struct leak_report *report, size_t nr)
{
	size_t most = nr - 1;

	for (size_t i = 0; i < report->nr_causes; i++)
		if (report->causes[i].bytes > report->causes[most].bytes)
			most = i;
	return most >= nr && (double)report->causes[most].bytes >=
				       LARGE_SHARE * (double)leak_report_all_bytes(report)
		       ? most
		       : nr - 1;
}

/* Chooses the causes to show in @rows, which has room for all. Returns how many. */
static size_t choose_rows(const struct leak_report *report, int nr_lines,
			  const struct summary_report_style *style, struct row *rows)
{
	size_t nr_fitting = nr_that_fit(report, nr_lines, style), nr = 0;
	size_t last = nr_fitting ? last_row(report, nr_fitting) : 0;
	bool has_end = report->options->limit || style->columns;

	for (size_t i = 0; nr_fitting && i < report->nr_causes; i++)
		if (i + has_end < nr_fitting || i == last)
			rows[nr++].cause = &report->causes[i];
	return nr;
}

int summary_rows_write(FILE *out, const struct leak_report *report, int nr_lines,
		       const struct summary_report_style *style, size_t *ret_nr)
{
	_cleanup_free_ struct row *rows = calloc(report->nr_causes + 1, sizeof(*rows));
	size_t nr = rows ? choose_rows(report, nr_lines, style, rows) : 0;
	struct name_pool *names = name_pool_create();
	int err = rows && names ? 0 : -ENOMEM;
	bool names_process = has_several_processes(report);

	*ret_nr = nr;
	for (size_t i = 0; i < nr && !err; i++) {
		rows[i].frames.stack.names = names;
		rows[i].frames.stack.wrappers = &report->wrappers;
	}
	for (size_t i = 0; i < nr && !err; i += MAX_TWINS) {
		size_t nr_left = nr - i < MAX_TWINS ? nr - i : MAX_TWINS;

		err = write_batch(out, report, rows + i, nr_left, names_process, style);
	}
	for (size_t i = 0; i < nr && rows; i++)
		deinit_row(&rows[i]);
	name_pool_destroy(names);
	return err;
}

int summary_rows_write_one(FILE *out, const struct leak_report *report,
			   const struct leak_cause *cause, const struct summary_report_style *style)
{
	struct name_pool *names = name_pool_create();
	struct row row = {
		.cause = cause,
		.frames.stack = {.names = names, .wrappers = &report->wrappers},
	};
	int err = names ? write_batch(out, report, &row, 1, true, style) : -ENOMEM;

	deinit_row(&row);
	name_pool_destroy(names);
	return err;
}
