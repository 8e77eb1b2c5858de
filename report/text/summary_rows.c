/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/summary_rows.h"

#include "common/colour.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "parser/statistics/held_bars.h"
#include "report/text/cause_frames.h"
#include "report/text/leak_words.h"
#include "report/text/resource_report.h"
#include "report/text/stack_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROWS    3
#define NR_BARS	    HELD_BARS_MAX
#define MAX_HISTORY 6	 /* stacks that changed a reference count */
#define MAX_TWINS   1000 /* rows that are compared with each other */
#define MAX_PARTS   3	 /* of a cause */
#define FEW_COLUMNS 100
#define INDENTATION 3
#define MAX_SITES   1000 /* of a cause whose names are looked up to find its parts */
#define PART_DEPTH  16	 /* functions of a part that are compared */
#define PART_NAMES  4	 /* of which are shown, the innermost ones */
/* A cause with this share of what is held is shown even where others come before it. */
#define LARGE_SHARE 0.2

/* A part of a cause: a callee of its common caller; or, without one, a line of the function. */
struct part {
	const char *names[PART_DEPTH]; /* from the callee inwards: what all its stacks share */
	size_t nr;
	const char *file;
	int line; /* 0: a callee */
	uint64_t bytes;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* What a row shows: a cause, and the stack that it is named after. */
struct row {
	const struct leak_cause *cause;
	struct cause_frames frames;
	struct part *parts; /* those with the most bytes first */
	size_t nr_parts;
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

/* --- parts --- */

/* The functions of @site from the callee inwards, as far as that which asked for the memory. */
static struct part part_of(const struct cause_frames *site)
{
	bool is_callee = site->inner != SIZE_MAX;
	size_t at = is_callee ? site->inner : site->first;
	const struct named_frame *frames = site->stack.frames;
	struct part part = {.file = is_callee ? NULL : frames[at].file};

	part.line = part.file ? frames[at].line : 0;
	do
		part.names[part.nr++] = frames[at].name;
	while (at-- > site->user && part.nr < PART_DEPTH);
	return part;
}

static void add_part(struct part *parts, size_t *nr, const struct cause_frames *site,
		     uint64_t bytes)
{
	struct part part = part_of(site);
	size_t i = 0, shared = 1;

	/* Names of one pool are equal pointers. */
	while (i < *nr && (parts[i].names[0] != part.names[0] || parts[i].line != part.line))
		i++;
	if (i == *nr)
		parts[(*nr)++] = part;
	while (shared < parts[i].nr && shared < part.nr &&
	       parts[i].names[shared] == part.names[shared])
		shared++;
	parts[i].nr = shared;
	parts[i].bytes += bytes;
}

static bool look_alike(const struct part *a, const struct part *b)
{
	size_t nr = a->nr < PART_NAMES ? a->nr : PART_NAMES;

	if (a->line || b->line || nr != (b->nr < PART_NAMES ? b->nr : PART_NAMES))
		return false;
	for (size_t i = 1; i <= nr; i++)
		if (a->names[a->nr - i] != b->names[b->nr - i])
			return false;
	return true;
}

/* Different ways to the same function are one part. Returns the number of parts that are left. */
static size_t merge_parts(struct part *parts, size_t nr)
{
	size_t nr_left = 0, k;

	for (size_t i = 0; i < nr; i++) {
		for (k = 0; k < nr_left && !look_alike(&parts[k], &parts[i]); k++)
			;
		if (k == nr_left)
			parts[nr_left++] = parts[i];
		else
			parts[k].bytes += parts[i].bytes;
	}
	return nr_left;
}

/* Finds the parts of a cause, those with the most bytes first. Returns 0 or -ENOMEM. */
static int find_parts(const struct leak_report *report, struct row *row)
{
	struct cause_frames site = {
		.stack = {.names = row->frames.stack.names, .wrappers = &report->wrappers}};
	size_t nr_sites = row->cause->nr < MAX_SITES ? row->cause->nr : MAX_SITES;
	int err = 0;

	row->parts = calloc(nr_sites + 1, sizeof(*row->parts));
	if (!row->parts)
		return -ENOMEM;
	for (size_t i = 0; i < nr_sites && !err; i++) {
		const struct leak_site *of = &report->sites_by_cause[row->cause->first + i];

		err = cause_frames_load(&site, report, row->cause, of);
		if (!err && site.stack.nr)
			add_part(row->parts, &row->nr_parts, &site, of->bytes);
	}
	named_stack_deinit(&site.stack);
	row->nr_parts = merge_parts(row->parts, row->nr_parts);
	qsort(row->parts, row->nr_parts, sizeof(*row->parts), compare_parts);
	return err;
}

/* If all ways lead to one function inside, the row is named after that. */
static void name_after_only_function(struct row *row)
{
	const char *name = NULL;

	for (size_t i = 0; i < row->nr_parts && row->frames.inner != SIZE_MAX; i++) {
		const char *innermost = row->parts[i].names[row->parts[i].nr - 1];

		if (name && name != innermost)
			return;
		name = innermost;
	}
	for (size_t i = row->frames.inner; name && i >= row->frames.user; i--) {
		if (row->frames.stack.frames[i].name == name)
			row->frames.first = i;
		if (!i)
			break;
	}
	if (row->nr_parts == 1)
		row->nr_parts = 0;
}

static int load_row(const struct leak_report *report, struct row *row)
{
	int err = cause_frames_load(&row->frames, report, row->cause, first_site(report, row));

	if (!err && row->cause->nr > 1)
		err = find_parts(report, row);
	if (!err)
		name_after_only_function(row);
	return err;
}

static void deinit_row(struct row *row)
{
	named_stack_deinit(&row->frames.stack);
	free(row->parts);
}

/* "server.c:19"; "load_font"; of a part that is all below one function of it "read_glyphs <
 * load_font" */
static void write_part(FILE *out, const struct part *part)
{
	if (part->line) {
		diag_print_escaped(out, named_stack_basename(part->file), NULL);
		fprintf(out, ":%d", part->line);
		return;
	}
	for (size_t i = 0; i < part->nr && i < PART_NAMES; i++) {
		fputs(i ? " < " : "", out);
		diag_print_escaped(out, part->names[part->nr - 1 - i], NULL);
	}
	if (part->nr > PART_NAMES)
		fputs(" ...", out);
}

/* "via read_glyphs < load_font 40 %, load_index 22 %, 7 more"; "via server.c:19 60 %, server.c:23
 * 40 %" */
static void write_parts(FILE *out, const struct row *row)
{
	uint64_t bytes = row->cause->bytes ? row->cause->bytes : 1;

	for (size_t i = 0; i < row->nr_parts && i < MAX_PARTS; i++) {
		fputs(i ? ", " : "\n   via ", out);
		write_part(out, &row->parts[i]);
		fprintf(out, " %.0f %%", 100 * (double)row->parts[i].bytes / (double)bytes);
	}
	if (row->nr_parts > MAX_PARTS)
		fprintf(out, ", %zu more", row->nr_parts - MAX_PARTS);
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
	if (verdict->doubts) {
		fputs(", ", out);
		leak_words_certainty(out, verdict->doubts);
	}
	fputs(": ", out);
	leak_words_held(out, kind, cause->blocks, cause->bytes);
	if (cause->nr > 1)
		fprintf(out, " in %zu stacks", cause->nr);
	if (verdict->has_rate) {
		fputs(", ", out);
		leak_words_rate(out, kind, &verdict->rate);
	}
	write_bars(out, report, verdict->site, style->utf8);
	if (names_process)
		write_process(out, report, row);
	fputs("\n   ", out);
	leak_words_lifetimes(out, kind, verdict);
	leak_words_reach(out, report, &cause->reach, cause->blocks);
	fprintf(out, "\n   %s", path);
	/* No line has room for the difference between these stacks; the full text shows it. */
	if (has_twin)
		fprintf(out, "  (stack %" PRIu32 ")",
			verdict_of(report, first_site(report, row))->site->stack_id);
	write_parts(out, row);
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
		if (!err && kind && kind->counts_refs)
			err = write_references(out, report, site, &rows[i].frames.stack);
	}
	stack_paths_free(texts, nr);
	return err;
}

/* With its first line broken where there are few columns. */
static int nr_lines_of(const struct leak_cause *cause, const struct summary_report_style *style)
{
	return (cause->nr > 1 ? 4 : 3) + (style->columns && style->columns < FEW_COLUMNS);
}

static size_t nr_that_fit(const struct leak_report *report, int nr_lines,
			  const struct summary_report_style *style)
{
	size_t nr = 0;

	if (report->options->top)
		return report->options->top < report->nr_causes ? report->options->top
								: report->nr_causes;
	while (nr < report->nr_causes &&
	       (nr < MIN_ROWS || nr_lines >= nr_lines_of(&report->causes[nr], style)))
		nr_lines -= nr_lines_of(&report->causes[nr++], style);
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

int summary_rows_write(FILE *out, const struct leak_report *report, int nr_lines,
		       const struct summary_report_style *style, size_t *ret_nr)
{
	size_t nr = nr_that_fit(report, nr_lines, style), last = nr ? last_row(report, nr) : 0;
	_cleanup_free_ struct row *rows = calloc(nr + 1, sizeof(*rows));
	struct name_pool *names = name_pool_create();
	int err = rows && names ? 0 : -ENOMEM;
	bool names_process = has_several_processes(report);

	*ret_nr = nr;
	for (size_t i = 0; i < nr && !err; i++) {
		rows[i].cause = &report->causes[i == nr - 1 ? last : i];
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
