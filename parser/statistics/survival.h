/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Estimates how many blocks of a site should be as old as its held ones, given the lifetimes of
 * those that it freed. Held blocks are right-censored observations. Each freed block is weighted by
 * the inverse of the share of blocks that could have been seen to live so long (docs/verdicts.md).
 * Pure arithmetic. Times are in nanoseconds.
 */
#ifndef LEAKTOOLS_PARSER_SURVIVAL_H
#define LEAKTOOLS_PARSER_SURVIVAL_H

#include "parser/statistics/site_stats.h"

/* The prior of the tail's estimate: one block, of Pareto index 1. */
#define SURVIVAL_PRIOR 1.0

struct survival {
	const struct site *site;
	double elapsed_ns; /* from the periods' origin to the end of the recording */
	double allocations;
	uint32_t ended[LIFETIME_BUCKETS]; /* freed blocks, by lifetime */
	/* The model of lifetimes beyond @tail_ns: a Pareto tail. */
	double tail_ns;	     /* 0: no block was freed */
	double tail_weight;  /* of the blocks that lived longer */
	double tail_deaths;  /* their effective number as evidence */
	double tail_log_sum; /* of log(lifetime / tail_ns), over @tail_deaths */
	double weight_from[LIFETIME_BUCKETS + 1]; /* of the blocks in this bucket or one above */
	/* In windows: survival_opportunities() by age; and the share of blocks that stays. */
	bool in_windows;
	double opportunities[LIFETIME_BUCKETS];
	double stays;
};

/* @end_ns is when the recording ended. */
void survival_init(struct survival *survival, const struct site *site, uint64_t origin_ns,
		   uint64_t end_ns);

/*
 * The same for a recording in windows: a block is observed until its window closes, or as long as
 * it is followed. @held: how many held blocks have surely lived so long, by lifetime_bucket().
 * @nr_in_flight: those of so many classes (site_late_ns()) are observed until the close, too.
 */
void survival_init_windows(struct survival *survival, const struct site *site, const uint32_t *held,
			   unsigned int nr_in_flight);

/* The time within which that share of the blocks that end have ended. */
double survival_quantile(const struct survival *survival, double quantile);

/* The number of the site's blocks allocated @age_ns or longer before the end. */
double survival_opportunities(const struct survival *survival, double age_ns);

/* The expected number of held blocks of that age or older, if all are freed in the end. */
double survival_expected(const struct survival *survival, double age_ns);

/* An upper bound of the log probability of @nr or more, if @expected are expected. */
double survival_log_chance(double nr, double expected);

#endif
