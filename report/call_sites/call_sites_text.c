/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/call_sites/call_sites_text.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/names/stack_path.h"
#include "report/text/cause_frames.h"
#include "report/text/leak_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STACKS 64 /* of each kind that are written */
#define MAX_OTHERS 1024

/* The frames, from the function's caller on, among which the call may be that is probed. */
#define MAX_DEPTH 3

void call_sites_change(void *counts, const struct heap_change *change)
{
	uint32_t allocated = change->block.allocated.stack_id;

	if (!change->release)
		return;
	if (change->enters)
		release_counts_withdraw(counts, allocated, change->release->stack_id);
	else
		release_counts_add(counts, allocated, change->release->stack_id);
}

bool call_sites_has_row(const struct leak_report *report, size_t row)
{
	if (row >= 1 && row <= report->nr_causes)
		return true;
	if (report->nr_causes)
		diag_error("there is no row %zu: the recording has only %zu cause%s; leakparse "
			   "--summary lists them",
			   row, report->nr_causes, quantity_plural(report->nr_causes));
	else
		diag_error("there is no row %zu: %s", row, leak_words_nothing(report));
	return false;
}

/* "# cause 1: 12 blocks, 36.0 KiB: query_font (daemon.c:63) < load_font < main" */
static int write_head(FILE *out, const struct leak_report *report, const struct leak_cause *cause)
{
	const struct leak_site *site = &report->sites_by_cause[cause->first];
	const struct resource_kind *kind = leak_report_kind_of(report, site);
	struct name_pool *names = name_pool_create();
	struct cause_frames frames = {.stack = {.names = names, .wrappers = &report->wrappers}};
	int err = names ? cause_frames_load(&frames, report, cause, site) : -ENOMEM;

	if (!err) {
		fprintf(out, "# cause %zu: ", (size_t)(cause - report->causes) + 1);
		if (report->in_windows)
			leak_words_estimate(out, kind, &cause->estimate);
		else
			leak_words_held(out, kind, cause->blocks, cause->bytes);
		fputs(": ", out);
		stack_path_write(out, &frames.stack, frames.first);
		fputc('\n', out);
	}
	named_stack_deinit(&frames.stack);
	name_pool_destroy(names);
	return err;
}

/* The time in which calls were observed: with the counts, it says how often they are made. */
static void write_observed(FILE *out, const struct analysis *analysis)
{
	double length_s = analysis->end_ns > analysis->start_ns
				  ? (double)(analysis->end_ns - analysis->start_ns) / 1e9
				  : 0;

	fprintf(out, "observed %.6f\n", length_s * analysis_observed_share(analysis));
}

static void write_frame(FILE *out, const struct stack_place *place)
{
	if (!place->path) {
		fputs("\t-\t-\t-\n", out);
		return;
	}
	fputc('\t', out);
	for (size_t i = 0; i < place->build_id_size; i++)
		fprintf(out, "%02x", place->build_id[i]);
	fprintf(out, "%s\t0x%" PRIx64 "\t", place->build_id_size ? "" : "-", place->file_offset);
	diag_print_escaped(out, place->path, NULL);
	fputc('\n', out);
}

/* Writes "KIND COUNT", and the @max_frames innermost frames. */
static void write_stack(FILE *out, const struct stack_store *stacks, const char *kind,
			const struct stack_count *stack, size_t max_frames)
{
	struct stack_place place;

	fprintf(out, "%s %" PRIu64 "\n", kind, stack->count);
	for (size_t k = 0; k < max_frames; k++) {
		if (stack_store_place(stacks, stack->stack_id, k, &place))
			break;
		write_frame(out, &place);
	}
}

/* Writes the @nr stacks, the most frequent first. */
static void write_stacks(FILE *out, const struct stack_store *stacks, const char *kind,
			 const struct stack_count *counts, size_t nr)
{
	for (size_t i = 0; i < nr && i < MAX_STACKS; i++)
		write_stack(out, stacks, kind, &counts[i], SIZE_MAX);
	if (nr > MAX_STACKS)
		fprintf(out, "# not listed: %zu more %s\n", nr - MAX_STACKS, kind);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * The stacks that allocate the blocks of @cause, sorted, each once: a site is there twice if
 * processes that ended left some of its blocks behind. NULL: out of memory.
 */
static uint32_t *stacks_of(const struct leak_report *report, const struct leak_cause *cause,
			   size_t *ret_nr)
{
	uint32_t *ids = calloc(cause->nr + 1, sizeof(*ids));
	size_t nr = 0;

	for (size_t i = 0; ids && i < cause->nr; i++) {
		const struct leak_site *of = &report->sites_by_cause[cause->first + i];

		ids[i] = report->verdicts.sites[of->site].site->stack_id;
	}
	if (ids)
		qsort(ids, cause->nr, sizeof(*ids), compare_ids);
	for (size_t i = 0; ids && i < cause->nr; i++)
		if (!nr || ids[nr - 1] != ids[i])
			ids[nr++] = ids[i];
	*ret_nr = nr;
	return ids;
}

static int write_allocations(FILE *out, const struct analysis *analysis, const uint32_t *ids,
			     size_t nr)
{
	const struct site_stats *sites = heap_tracker_sites(analysis->heaps);
	_cleanup_free_ struct stack_count *counts = calloc(nr + 1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct site *site = site_stats_find(sites, ids[i]);

		counts[i] = (struct stack_count){ids[i], site ? site->allocations : 0};
	}
	nr = stack_counts_join(counts, nr);
	write_stacks(out, analysis->stacks, "alloc", counts, nr);
	return 0;
}

static int write_releases(FILE *out, const struct analysis *analysis, const uint32_t *ids,
			  size_t nr, const struct release_counts *releases)
{
	_cleanup_free_ struct stack_count *counts = NULL;
	int err = release_counts_of(releases, ids, nr, &counts, &nr);

	if (err)
		return err;
	write_stacks(out, analysis->stacks, "release", counts, nr);
	return 0;
}

static bool is_same_place(const struct stack_place *a, const struct stack_place *b)
{
	return a->path && b->path && a->file_offset == b->file_offset &&
	       strcmp(a->path, b->path) == 0;
}

/* True if both stacks allocate by one call, as far as the innermost frames tell. */
static bool share_call(const struct stack_store *stacks, uint32_t a, uint32_t b)
{
	struct stack_place of_a, of_b;

	for (size_t k = 1; k <= MAX_DEPTH; k++) {
		if (stack_store_place(stacks, a, k, &of_a) ||
		    stack_store_place(stacks, b, k, &of_b))
			return false;
		if (is_same_place(&of_a, &of_b))
			return true;
	}
	return false;
}

/*
 * Writes the other stacks that share calls with those in @ids, each with its releases. A probe on
 * such a call meets them, too, and a recorder needs to see what becomes of their blocks.
 */
static int write_others(FILE *out, const struct analysis *analysis, const uint32_t *ids, size_t nr,
			const struct release_counts *releases)
{
	size_t nr_sites, nr_others = 0;
	const struct site *sites = site_stats_list(heap_tracker_sites(analysis->heaps), &nr_sites);
	int err = 0;

	for (size_t i = 0; i < nr_sites && !err; i++) {
		const struct stack_count other = {sites[i].stack_id, sites[i].allocations};
		bool shares = false;

		if (bsearch(&other.stack_id, ids, nr, sizeof(*ids), compare_ids))
			continue;
		for (size_t k = 0; k < nr && k < MAX_STACKS && !shares; k++)
			shares = share_call(analysis->stacks, other.stack_id, ids[k]);
		if (!shares || nr_others++ >= MAX_OTHERS)
			continue;
		write_stack(out, analysis->stacks, "other", &other, MAX_DEPTH + 1);
		err = write_releases(out, analysis, &other.stack_id, 1, releases);
	}
	if (nr_others > MAX_OTHERS)
		fprintf(out, "# not listed: %zu more other\n", nr_others - MAX_OTHERS);
	return err;
}

static void write_uncounted(FILE *out, const struct release_counts *releases)
{
	uint64_t uncounted = release_counts_uncounted(releases);

	if (uncounted)
		fprintf(out,
			"# not counted: %" PRIu64 " release%s of blocks of any cause: more than %d "
			"pairs of an allocation's and a release's stack\n",
			uncounted, quantity_plural(uncounted), RELEASE_COUNTS_MAX);
}

int call_sites_write(FILE *out, const struct leak_report *report, size_t row,
		     const struct release_counts *releases)
{
	const struct leak_cause *cause = &report->causes[row - 1];
	size_t nr;
	_cleanup_free_ uint32_t *ids = stacks_of(report, cause, &nr);
	int err = ids ? write_head(out, report, cause) : -ENOMEM;

	if (!err)
		write_observed(out, report->analysis);
	if (!err)
		err = write_allocations(out, report->analysis, ids, nr);
	if (!err)
		err = write_releases(out, report->analysis, ids, nr, releases);
	if (!err)
		err = write_others(out, report->analysis, ids, nr, releases);
	write_uncounted(out, releases);
	return fflush(out) || ferror(out) ? -EIO : err;
}
