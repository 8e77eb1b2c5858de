/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides from the allocation times of a site's suspect blocks whether they keep arriving at a
 * steady rate, and gives the rate with its error; or which other pattern they have
 * (docs/verdicts.md). Pure arithmetic. Times are in seconds.
 */
#ifndef LEAKTOOLS_PARSER_GROWTH_H
#define LEAKTOOLS_PARSER_GROWTH_H

#include <stdbool.h>
#include <stddef.h>

struct arrival {
	double time_s;
	double bytes;
};

struct growth_rate {
	double blocks_per_s, blocks_error; /* the error is one standard deviation */
	double bytes_per_s, bytes_error;
	double from_s, to_s; /* the time with this rate */
};

enum growth_pattern {
	GROWTH_STEADY,	 /* they keep coming */
	GROWTH_STOPPED,	 /* arrivals declined or stopped */
	GROWTH_AT_START, /* nearly all came in the first tenth */
	GROWTH_BURST,	 /* nearly all came at once, later */
	GROWTH_FEW,	 /* too few to tell */
};

/*
 * @arrivals are in time order and lie in [@start_s, @end_s], the time in which arrivals are
 * possible. GROWTH_STEADY fills @ret.
 */
enum growth_pattern growth_fit(const struct arrival *arrivals, size_t nr, double start_s,
			       double end_s, struct growth_rate *ret);

#endif
