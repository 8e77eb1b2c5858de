/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/history_writer.h"

#include "common/scope.h"
#include "report/text/leaks_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 20 /* periods of 2^20 ns, as in site_stats */
/* Buckets that are merged in the text, which keeps two per doubling. */
#define BUCKETS_JOINED (1u << (LIFETIME_SUB_BITS - 1))

/* The amounts held at the end of each period. */
struct history {
	uint64_t bytes[SITE_PERIODS], blocks[SITE_PERIODS];
	uint64_t peak_bytes, peak_blocks; /* at the peak of all stacks together */
};

/* The periods of the text. They are as long as the longest of any site's own. */
struct periods {
	uint64_t origin_ns;
	unsigned int shift;
	size_t nr;
	const struct site_stats *stats; /* of all sites */
};

struct chosen_site {
	const struct site *site;
	uint64_t peak_bytes, peak_blocks;
};

static struct periods choose_periods(const struct analysis *analysis, const struct site *sites,
				     size_t nr_sites)
{
	struct periods periods = {
		.stats = heap_tracker_sites(analysis->heaps),
		.origin_ns = site_stats_origin(heap_tracker_sites(analysis->heaps)),
		.shift = FIRST_SHIFT,
	};
	uint64_t length_ns;

	for (size_t i = 0; i < nr_sites; i++)
		if (sites[i].history && sites[i].history->shift > periods.shift)
			periods.shift = sites[i].history->shift;
	length_ns = analysis->end_ns > periods.origin_ns ? analysis->end_ns - periods.origin_ns : 0;
	while (length_ns >> periods.shift >= SITE_PERIODS)
		periods.shift++;
	periods.nr = (size_t)(length_ns >> periods.shift) + 1;
	return periods;
}

/* The period of the text that contains period @i of a site; at most the last one. */
static size_t period_of(const struct periods *periods, const struct site_history *history, size_t i)
{
	size_t period = i >> (periods->shift - history->shift);

	return period < periods->nr ? period : periods->nr - 1;
}

/* Adds the changes of @site in each period; accumulate() turns changes into amounts. */
static void add_site(struct history *sum, const struct periods *periods, const struct site *site)
{
	const struct site_history *history = site->history;
	uint64_t peak_bytes, peak_blocks;

	site_at_peak(periods->stats, site, &peak_bytes, &peak_blocks);
	sum->peak_bytes += peak_bytes;
	sum->peak_blocks += peak_blocks;
	if (!history) {
		uint64_t since_ns = site->first_ns > periods->origin_ns
					    ? site->first_ns - periods->origin_ns
					    : 0;
		size_t period = (size_t)(since_ns >> periods->shift);

		period = period < periods->nr ? period : periods->nr - 1;
		sum->bytes[period] += site->held_bytes;
		sum->blocks[period] += site_held_blocks(site);
		return;
	}
	for (size_t i = 0; i < SITE_PERIODS; i++) {
		size_t period = period_of(periods, history, i);

		sum->bytes[period] += (uint64_t)history->periods[i].added_bytes;
		sum->blocks[period] +=
			(uint64_t)history->periods[i].allocated - history->periods[i].ended;
	}
}

static void accumulate(struct history *history)
{
	for (size_t i = 1; i < SITE_PERIODS; i++) {
		history->bytes[i] += history->bytes[i - 1];
		history->blocks[i] += history->blocks[i - 1];
	}
}

/* A sum below 0, which a withdrawn block may leave, counts as 0. */
static uint64_t amount(uint64_t sum)
{
	return sum > INT64_MAX ? 0 : sum;
}

static struct chosen_site with_peaks(const struct periods *periods, const struct site *site)
{
	struct chosen_site chosen = {.site = site};
	struct history history = {0};

	add_site(&history, periods, site);
	accumulate(&history);
	for (size_t i = 0; i < periods->nr; i++) {
		if (amount(history.bytes[i]) > chosen.peak_bytes)
			chosen.peak_bytes = amount(history.bytes[i]);
		if (amount(history.blocks[i]) > chosen.peak_blocks)
			chosen.peak_blocks = amount(history.blocks[i]);
	}
	return chosen;
}

static void write_amounts(FILE *out, const char *key, const uint64_t *amounts, size_t nr)
{
	fprintf(out, " %s=", key);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", amount(amounts[i]));
}

static void write_lifetimes(FILE *out, const struct lifetime_sketch *lifetimes)
{
	const char *separator = " lifetimes=";

	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i += BUCKETS_JOINED) {
		uint64_t nr = 0;

		for (unsigned int k = 0; k < BUCKETS_JOINED; k++)
			nr += lifetime_sketch_count(lifetimes, i + k);
		if (!nr)
			continue;
		fprintf(out, "%s%" PRIu64 ":%" PRIu64, separator, lifetime_bucket_start(i), nr);
		separator = ",";
	}
}

static void write_history(FILE *out, const struct periods *periods, const struct history *history,
			  const struct lifetime_sketch *lifetimes)
{
	write_amounts(out, "held_bytes", history->bytes, periods->nr);
	write_amounts(out, "held_blocks", history->blocks, periods->nr);
	if (site_stats_peak(periods->stats).bytes)
		fprintf(out, " at_peak_bytes=%" PRIu64 " at_peak_blocks=%" PRIu64,
			amount(history->peak_bytes), amount(history->peak_blocks));
	if (lifetimes)
		write_lifetimes(out, lifetimes);
	fputc('\n', out);
}

static int write_all(FILE *out, const struct periods *periods, const struct site *sites,
		     size_t nr_sites)
{
	struct lifetime_sketch lifetimes = {0};
	struct history history = {0};
	int err = 0;

	for (size_t i = 0; i < nr_sites && !err; i++) {
		add_site(&history, periods, &sites[i]);
		if (sites[i].history)
			err = lifetime_sketch_merge(&lifetimes, &sites[i].history->lifetimes);
	}
	accumulate(&history);
	fputs("history all", out);
	write_history(out, periods, &history, &lifetimes);
	lifetime_sketch_deinit(&lifetimes);
	return err;
}

static void write_site(struct stack_lines *lines, const struct periods *periods,
		       const struct site *site)
{
	struct history history = {0};
	FILE *out = lines->out;

	add_site(&history, periods, site);
	accumulate(&history);
	stack_lines_define(lines, site->stack_id, NULL);
	fprintf(out, "history %" PRIu32, site->stack_id);
	write_history(out, periods, &history, site->history ? &site->history->lifetimes : NULL);
}

/* Most bytes first, then most blocks: handles have no bytes. */
static bool is_before(const struct chosen_site *a, const struct chosen_site *b)
{
	if (a->peak_bytes != b->peak_bytes)
		return a->peak_bytes > b->peak_bytes;
	if (a->peak_blocks != b->peak_blocks)
		return a->peak_blocks > b->peak_blocks;
	return a->site->stack_id < b->site->stack_id;
}

/* Inserts @site into the @nr sorted sites, of which @max are kept. Returns the new number. */
static size_t insert(struct chosen_site *chosen, size_t nr, size_t max, struct chosen_site site)
{
	size_t i = nr;

	while (i > 0 && is_before(&site, &chosen[i - 1]))
		i--;
	if (i == max)
		return nr;
	nr += nr < max;
	memmove(&chosen[i + 1], &chosen[i], (nr - 1 - i) * sizeof(*chosen));
	chosen[i] = site;
	return nr;
}

static bool has_site(const struct chosen_site *chosen, size_t nr, const struct site *site)
{
	for (size_t i = 0; i < nr; i++)
		if (chosen[i].site == site)
			return true;
	return false;
}

static void write_sites(struct stack_lines *lines, const struct leak_report *report,
			const struct periods *periods, const struct site *sites, size_t nr_sites)
{
	struct chosen_site chosen[2 * HISTORY_MAX_STACKS];
	size_t nr = 0;

	for (size_t i = 0; i < nr_sites; i++) {
		/* Avoids computing the peaks of most stacks. */
		if (nr == HISTORY_MAX_STACKS && sites[i].peak_bytes < chosen[nr - 1].peak_bytes)
			continue;
		nr = insert(chosen, nr, HISTORY_MAX_STACKS, with_peaks(periods, &sites[i]));
	}
	for (size_t i = 0; i < report->nr_listed_sites && i < HISTORY_MAX_STACKS; i++) {
		const struct site *site = report->verdicts.sites[report->sites[i].site].site;

		if (!has_site(chosen, nr, site))
			nr = insert(chosen, nr, ARRAY_SIZE(chosen), with_peaks(periods, site));
	}
	for (size_t i = 0; i < nr && !ferror(lines->out); i++)
		write_site(lines, periods, chosen[i].site);
}

static void write_causes(FILE *out, const struct leak_report *report, const struct periods *periods,
			 const size_t *causes)
{
	size_t nr = 0;

	fputs("# columns: cause-history NR KEY=VALUE...\n", out);
	for (size_t i = 0; i < report->nr_causes && nr < HISTORY_MAX_STACKS; i++) {
		const struct leak_cause *cause = &report->causes[i];
		struct history history = {0};

		if (!causes[cause->cause])
			continue;
		for (size_t k = 0; k < cause->nr; k++) {
			uint32_t site = report->sites_by_cause[cause->first + k].site;

			add_site(&history, periods, report->verdicts.sites[site].site);
		}
		accumulate(&history);
		fprintf(out, "cause-history %zu", causes[cause->cause]);
		write_history(out, periods, &history, NULL);
		nr++;
	}
}

int history_write(struct stack_lines *lines, const struct leak_report *report, const size_t *causes)
{
	const struct analysis *analysis = report->analysis;
	FILE *out = lines->out;
	const struct site *sites;
	struct periods periods;
	size_t nr;
	int err;

	sites = site_stats_list(heap_tracker_sites(analysis->heaps), &nr);
	/* In windows, what was held over time is not known. */
	if (!nr || report->in_windows || report->options->size || leak_report_is_narrowed(report))
		return 0;
	periods = choose_periods(analysis, sites, nr);
	fprintf(out, "# columns: periods NR BEGIN LENGTH KEY=VALUE...\nperiods %zu ", periods.nr);
	leaks_write_time(out, periods.origin_ns);
	fputc(' ', out);
	leaks_write_time(out, UINT64_C(1) << periods.shift);
	if (site_stats_peak(periods.stats).bytes) {
		fputs(" peak=", out);
		leaks_write_time(out, site_stats_peak(periods.stats).time_ns);
	}
	fputs("\n# columns: history STACK KEY=VALUE...\n", out);
	err = write_all(out, &periods, sites, nr);
	write_sites(lines, report, &periods, sites, nr);
	write_causes(out, report, &periods, causes);
	return err;
}
