/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_together.h"

#include "common/scope.h"
#include "parser/causes/cause_times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * At least this share of the rarer cause's blocks has a block of the other cause within NEAR_GAP,
 * which is a share of the mean distance between the other cause's blocks, or within NEAR_NS: a
 * server that has no time to wait needs only some times as long for a request as for the few probes
 * between two allocations.
 */
#define NEAR_SHARE 0.8
#define NEAR_GAP   0.1
#define NEAR_NS	   10000.0
#define MAX_CAUSES 64 /* how many are compared with each other */

/* A cause, and the allocation times of its suspect blocks. */
struct timed_cause {
	struct cause_found *found;
	struct cause_times times;
};

static int compare_weights(const void *a, const void *b)
{
	const struct cause_found *x = ((const struct timed_cause *)a)->found;
	const struct cause_found *y = ((const struct timed_cause *)b)->found;

	return (x->bag.weight < y->bag.weight) - (x->bag.weight > y->bag.weight);
}

/* The share of the times in @fewer that have a time of @more nearby. Neither is empty. */
static double share_near(const struct cause_times *fewer, const struct cause_times *more)
{
	double near_ns = fmax(NEAR_NS, NEAR_GAP * (double)(more->ns[more->nr - 1] - more->ns[0]) /
					       (double)more->nr);
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
static bool come_together(const struct cause_times *a, const struct cause_times *b)
{
	const struct cause_times *more = a->nr > b->nr ? a : b, *fewer = a->nr > b->nr ? b : a;

	return cause_times_are_multiples(a->nr, b->nr) && cause_times_are_alike(a, b) &&
	       share_near(fewer, more) >= NEAR_SHARE;
}

/* Joins the causes that come together with @causes[0] and have a caller in common with it. */
static void join_with_first(struct cause_finder *finder, const struct timed_cause *causes,
			    size_t nr)
{
	struct cause_found *first = causes[0].found, joined;
	struct cause_bag bag = first->bag;
	struct judged_ages ages;

	for (size_t i = 1; i < nr; i++) {
		struct cause_found *other = causes[i].found;

		if (other->is_dropped ||
		    !cause_nr_shared(&finder->members[first->bag.lowest],
				     &finder->members[other->bag.lowest]) ||
		    !come_together(&causes[0].times, &causes[i].times))
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

static void collect_times(const struct cause_finder *finder, struct timed_cause *cause,
			  uint64_t *ns)
{
	cause->times.ns = ns;
	for (size_t i = cause->found->bag.first; i != CAUSE_NO_MEMBER; i = finder->members[i].next)
		cause_times_add(finder, &cause->times, i);
	cause_times_sort(&cause->times);
}

void cause_together_join(struct cause_finder *finder)
{
	_cleanup_free_ struct timed_cause *causes = calloc(finder->nr_found + 1, sizeof(*causes));
	_cleanup_free_ uint64_t *ns = calloc(finder->input->nr_held + 1, sizeof(*ns));
	size_t nr = 0, nr_ns = 0;

	if (!causes || !ns) {
		finder->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < finder->nr_found; i++)
		if (cause_is_leak(finder->found[i].verdict.verdict) &&
		    finder->found[i].verdict.suspect_blocks >= CAUSE_TIMES_MIN)
			causes[nr++].found = &finder->found[i];
	qsort(causes, nr, sizeof(*causes), compare_weights);
	if (nr > MAX_CAUSES)
		nr = MAX_CAUSES;
	for (size_t i = 0; i < nr; i++) {
		collect_times(finder, &causes[i], ns + nr_ns);
		nr_ns += causes[i].times.nr;
	}
	for (size_t i = 0; i < nr && !finder->err; i++)
		if (!causes[i].found->is_dropped)
			join_with_first(finder, &causes[i], nr - i);
}
