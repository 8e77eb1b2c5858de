/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Do blocks keep coming that stay? Takes the times at which a site's suspect blocks were allocated
 * and tells whether they arrive at a rate that goes on, with the rate and its error; or in which
 * other way they came (docs/verdicts.md). Pure arithmetic. Times are in seconds.
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
	double from_s, to_s; /* when it was so */
};

enum growth_pattern {
	GROWTH_STEADY,	 /* they keep coming */
	GROWTH_STOPPED,	 /* fewer and fewer came, or no more after a time */
	GROWTH_AT_START, /* nearly all came in the first tenth */
	GROWTH_BURST,	 /* nearly all came at once, later than that */
	GROWTH_FEW,	 /* too few to tell */
};

/*
 * @arrivals are in time order and lie in [@start_s, @end_s], in which they could have come. @ret is
 * filled if they keep coming.
 */
enum growth_pattern growth_fit(const struct arrival *arrivals, size_t nr, double start_s,
			       double end_s, struct growth_rate *ret);

#endif
