/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/survival.h"

#include <math.h>
#include <string.h>

#define MIN_TAIL_DEATHS	  10
#define MIN_OPPORTUNITIES 0.05 /* share of the allocations */

double survival_opportunities(const struct survival *survival, double age_ns)
{
	const struct site_history *history = survival->site->history;
	/* Blocks of this first part of the recording had the time to become as old. */
	double before_ns = survival->elapsed_ns - age_ns, period_ns, nr = 0;
	size_t whole;

	if (survival->in_windows)
		return survival->opportunities[lifetime_bucket((uint64_t)age_ns)];
	if (before_ns < 0)
		return 0;
	/* At most one block, which was not freed (site_stats.h). */
	if (!history)
		return (double)survival->site->allocations;
	period_ns = (double)(UINT64_C(1) << history->shift);
	whole = before_ns / period_ns < SITE_PERIODS ? (size_t)(before_ns / period_ns)
						     : SITE_PERIODS;
	for (size_t i = 0; i < whole; i++)
		nr += history->periods[i].allocated;
	if (whole < SITE_PERIODS && history->periods[whole].allocated) {
		/* The last period may extend beyond the recording. */
		double start_ns = (double)whole * period_ns;
		double length_ns = fmin(period_ns, survival->elapsed_ns - start_ns);

		if (length_ns > 0)
			nr += history->periods[whole].allocated *
			      fmin(1, (before_ns - start_ns) / length_ns);
	}
	return nr;
}

/*
 * Computes the weights, longest lifetimes first. A block that was freed at age x weighs N / N(x):
 * of N blocks, the N(x) that were allocated at least x before the end could be seen to live so
 * long. N(x) is an estimate. It is never less than the number that was seen, nor less than N / 20:
 * no block may speak for more than 20.
 */
static void weigh(struct survival *survival)
{
	double nr = 0, fewest = MIN_OPPORTUNITIES * survival->allocations;

	for (unsigned int i = LIFETIME_BUCKETS; i-- > 0;) {
		uint32_t count = survival->ended[i];
		double value_ns = lifetime_bucket_value(i);

		survival->weight_from[i] = survival->weight_from[i + 1];
		if (!count)
			continue;
		nr += count;
		survival->weight_from[i] +=
			count * survival->allocations /
			fmax(fmax(nr, fewest), survival_opportunities(survival, value_ns));
	}
}

/*
 * Hill's estimator over the longest lifetimes: the square root of @nr_deaths, at least
 * MIN_TAIL_DEATHS, rounded up to whole buckets. A death is a block that was freed.
 */
static void fit_tail(struct survival *survival, double nr_deaths)
{
	double wanted = fmax(MIN_TAIL_DEATHS, ceil(sqrt(nr_deaths)));
	double nr = 0, log_sum = 0, squares = 0, weight = 0;
	unsigned int tail = LIFETIME_BUCKETS;

	for (unsigned int i = LIFETIME_BUCKETS; i-- > 0 && nr < wanted;) {
		uint32_t count = survival->ended[i];

		if (!count)
			continue;
		nr += count;
		tail = i;
	}
	if (tail == LIFETIME_BUCKETS)
		return;
	survival->tail_ns = fmax(1, (double)lifetime_bucket_start(tail));
	for (unsigned int i = tail; i < LIFETIME_BUCKETS; i++) {
		uint32_t count = survival->ended[i];
		double bucket_weight = survival->weight_from[i] - survival->weight_from[i + 1];

		if (!count)
			continue;
		weight += bucket_weight;
		squares += bucket_weight * bucket_weight / count;
		log_sum +=
			bucket_weight * log(fmax(1, lifetime_bucket_value(i) / survival->tail_ns));
	}
	survival->tail_weight = weight;
	/* Kish's effective number: few heavy weights are little evidence. */
	survival->tail_deaths = weight * weight / squares;
	survival->tail_log_sum = survival->tail_deaths * log_sum / weight;
}

void survival_init(struct survival *survival, const struct site *site, uint64_t origin_ns,
		   uint64_t end_ns)
{
	memset(survival, 0, sizeof(*survival));
	survival->site = site;
	survival->elapsed_ns = end_ns > origin_ns ? (double)(end_ns - origin_ns) : 0;
	survival->allocations = (double)site->allocations;
	if (!site->history || !site->frees)
		return;
	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i++)
		survival->ended[i] = lifetime_sketch_count(&site->history->lifetimes, i);
	weigh(survival);
	fit_tail(survival, (double)site->frees);
}

/*
 * Kaplan and Meier's estimate by buckets of age. Of the blocks that were observed to that age, some
 * end, and others are observed no longer (@left), at any time within the bucket. So half of these
 * count as observed in it, as in a life table.
 */
static void estimate(struct survival *survival, const double *left)
{
	double share = 1, at_risk = survival->allocations;

	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i++) {
		double ended = survival->ended[i];
		double drop = ended > 0 ? share * ended / (at_risk - left[i] / 2) : 0;

		survival->opportunities[i] = share > 0 ? at_risk / share : 0;
		survival->weight_from[i] = survival->allocations * drop;
		share = fmax(0, share - drop);
		at_risk -= ended + left[i];
	}
	survival->stays = share;
	for (unsigned int i = LIFETIME_BUCKETS; i-- > 0;)
		survival->weight_from[i] += survival->weight_from[i + 1];
}

void survival_init_windows(struct survival *survival, const struct site *site, const uint32_t *held,
			   unsigned int nr_in_flight)
{
	static const struct site_windows none;
	const struct site_windows *windows =
		site->history->windows ? site->history->windows : &none;
	/* The classes begin where buckets do. */
	unsigned int young = nr_in_flight < SITE_LATE_CLASSES
				     ? lifetime_bucket(site_late_ns(nr_in_flight))
				     : LIFETIME_BUCKETS;
	double left[LIFETIME_BUCKETS], outlived = 0;

	memset(survival, 0, sizeof(*survival));
	survival->site = site;
	survival->in_windows = true;
	for (unsigned int i = 0; i < SITE_PERIODS; i++)
		outlived += windows->followed[i];
	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i++) {
		survival->ended[i] = lifetime_sketch_count(&site->history->lifetimes, i);
		left[i] = (double)lifetime_sketch_count(&windows->unobserved, i) + held[i];
		outlived -= held[i];
		for (unsigned int k = 0; k < nr_in_flight; k++) {
			uint32_t late = lifetime_sketch_count(&windows->late[k], i);

			outlived -= late;
			/* An end may have been taken back. */
			survival->ended[i] -= late < survival->ended[i] ? late : survival->ended[i];
		}
		if (i < young)
			left[i] += lifetime_sketch_count(&windows->late_at_close, i);
		survival->allocations += survival->ended[i] + left[i];
	}
	estimate(survival, left);
	/*
	 * Looks prove ends late. Where windows see so many short lives that their root is the
	 * number of these ends, the longest lives would be of both kinds, with nothing in between,
	 * and the tail would seem to have no end.
	 */
	fit_tail(survival, outlived >= MIN_TAIL_DEATHS ? outlived : (double)survival->site->frees);
}

double survival_quantile(const struct survival *survival, double quantile)
{
	double left = (1 - quantile) * survival->weight_from[0];
	unsigned int i = 0;

	while (i + 1 < LIFETIME_BUCKETS && survival->weight_from[i + 1] > left)
		i++;
	return lifetime_bucket_value(i);
}

double survival_expected(const struct survival *survival, double age_ns)
{
	double weight, share, log_ratio;

	if (survival->tail_ns == 0)
		return survival->allocations; /* nothing is known */
	share = survival_opportunities(survival, age_ns) / survival->allocations;
	if (age_ns <= survival->tail_ns) {
		weight = survival->weight_from[lifetime_bucket((uint64_t)age_ns)];
	} else {
		log_ratio = log(age_ns / survival->tail_ns);
		weight = survival->tail_weight *
			 pow((survival->tail_log_sum + SURVIVAL_PRIOR) /
				     (survival->tail_log_sum + SURVIVAL_PRIOR + log_ratio),
			     survival->tail_deaths + SURVIVAL_PRIOR);
	}
	return fmin(survival->allocations, weight) * share;
}

double survival_log_chance(double nr, double expected)
{
	if (nr <= expected)
		return 0;
	if (expected <= 0)
		return -INFINITY;
	return nr - expected - nr * log(nr / expected);
}
