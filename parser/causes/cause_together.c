/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_together.h"

#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MIN_BLOCKS 10	/* fewer could come together by chance */
#define MAX_RATIO  64	/* of their blocks; it is a whole number */
#define MAX_KS	   0.35 /* independent causes agree so well in 3 of 10,000 cases */
/*
 * At least this share of the rarer cause's blocks has a block of the other cause within NEAR_GAP,
 * which is a share of the mean distance between the other cause's blocks.
 */
#define NEAR_SHARE 0.8
#define NEAR_GAP   0.1
#define MAX_CAUSES 64 /* how many are compared with each other */

/* The allocation times of the suspect blocks of a cause. */
struct times {
	struct cause_found *found;
	uint64_t *ns;
	size_t nr;
};

static int compare_weights(const void *a, const void *b)
{
	const struct cause_found *x = ((const struct times *)a)->found;
	const struct cause_found *y = ((const struct times *)b)->found;

	return (x->bag.weight < y->bag.weight) - (x->bag.weight > y->bag.weight);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void collect_times(const struct cause_finder *finder, struct times *times, uint64_t *ns)
{
	const struct verdicts *verdicts = finder->verdicts;

	times->ns = ns;
	for (size_t i = times->found->bag.first; i != CAUSE_NO_MEMBER;
	     i = finder->members[i].next) {
		const struct site_verdict *site = finder->members[i].site;

		for (size_t k = 0; site && k < site->held_blocks; k++) {
			uint32_t index = verdicts->order[site->first + k];

			if (verdicts->blocks[index].verdict != VERDICT_NOT_YET)
				ns[times->nr++] = finder->input->held[index].allocated.time_ns;
		}
	}
	qsort(ns, times->nr, sizeof(*ns), compare_times);
}

/* The greatest distance between the two empirical distributions (Kolmogorov and Smirnov). */
static double distance(const struct times *a, const struct times *b)
{
	double most = 0;
	size_t i = 0, k = 0;

	while (i < a->nr && k < b->nr) {
		uint64_t now = a->ns[i] < b->ns[k] ? a->ns[i] : b->ns[k];

		while (i < a->nr && a->ns[i] == now)
			i++;
		while (k < b->nr && b->ns[k] == now)
			k++;
		most = fmax(most, fabs((double)i / (double)a->nr - (double)k / (double)b->nr));
	}
	return most;
}

/* The share of the times in @fewer that have a time of @more nearby. Neither is empty. */
static double share_near(const struct times *fewer, const struct times *more)
{
	double near_ns =
		NEAR_GAP * (double)(more->ns[more->nr - 1] - more->ns[0]) / (double)more->nr;
	size_t nr = 0;

	for (size_t i = 0, k = 0; i < fewer->nr; i++) {
		/* Find the first time of @more that is not too early. */
		while (k < more->nr && (double)fewer->ns[i] - (double)more->ns[k] > near_ns)
			k++;
		nr += k < more->nr && (double)more->ns[k] - (double)fewer->ns[i] <= near_ns;
	}
	return (double)nr / (double)fewer->nr;
}

/*
 * True if the blocks of the two come together: a fixed number of the one for each of the other,
 * spread alike over the recording, and at the same moments. The last condition tells them from two
 * leaks that just have steady rates.
 */
static bool come_together(const struct times *a, const struct times *b)
{
	const struct times *more = a->nr > b->nr ? a : b, *fewer = a->nr > b->nr ? b : a;
	double nr = (double)more->nr, nr_fewer = (double)fewer->nr, ratio = round(nr / nr_fewer);

	return ratio <= MAX_RATIO && fabs(nr - ratio * nr_fewer) <= fmax(2, 0.01 * nr) &&
	       distance(a, b) * sqrt(nr * nr_fewer / (nr + nr_fewer)) <= MAX_KS &&
	       share_near(fewer, more) >= NEAR_SHARE;
}

/* Joins the causes that come together with @times[0] and have a caller in common with it. */
static void join_with_first(struct cause_finder *finder, const struct times *times, size_t nr)
{
	struct cause_found *first = times[0].found, joined;
	struct cause_bag bag = first->bag;
	struct judged_ages ages;

	for (size_t i = 1; i < nr; i++) {
		struct cause_found *other = times[i].found;

		if (other->is_dropped ||
		    !cause_nr_shared(&finder->members[first->bag.lowest],
				     &finder->members[other->bag.lowest]) ||
		    !come_together(&times[0], &times[i]))
			continue;
		cause_bag_pour(finder, &bag, &other->bag);
		other->is_dropped = true;
		site_sum_deinit(&other->sum);
		other->sum = (struct site){0};
	}
	if (bag.nr == first->bag.nr || finder->err)
		return;
	finder->err = cause_judge(finder, &bag, &joined, &ages);
	site_sum_deinit(&first->sum);
	*first = joined;
}

void cause_together_join(struct cause_finder *finder)
{
	_cleanup_free_ struct times *times = calloc(finder->nr_found + 1, sizeof(*times));
	_cleanup_free_ uint64_t *ns = calloc(finder->input->nr_held + 1, sizeof(*ns));
	size_t nr = 0, nr_ns = 0;

	if (!times || !ns) {
		finder->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < finder->nr_found; i++)
		if (cause_is_leak(finder->found[i].verdict.verdict) &&
		    finder->found[i].verdict.suspect_blocks >= MIN_BLOCKS)
			times[nr++].found = &finder->found[i];
	qsort(times, nr, sizeof(*times), compare_weights);
	if (nr > MAX_CAUSES)
		nr = MAX_CAUSES;
	for (size_t i = 0; i < nr; i++) {
		collect_times(finder, &times[i], ns + nr_ns);
		nr_ns += times[i].nr;
	}
	for (size_t i = 0; i < nr && !finder->err; i++)
		if (!times[i].found->is_dropped)
			join_with_first(finder, &times[i], nr - i);
}
