/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time in which a site's blocks could enter the sample that leakrec looks at. It is the
 * observed time, in which each window counts as much as the sample has of the blocks that outlived
 * it. What stays at a steady rate comes into the sample at that rate, by this clock
 * (docs/verdicts.md, "In windows").
 *
 * Shares are those of the site's periods (site_stats.h). While a window is open, all of its blocks
 * are known, so that none stands for others.
 */
#ifndef LEAKTOOLS_PARSER_FOLLOWED_CLOCK_H
#define LEAKTOOLS_PARSER_FOLLOWED_CLOCK_H

#include "parser/statistics/site_stats.h"
#include "parser/windows/observed_time.h"

struct followed_clock {
	const struct observed_time *time;
	uint64_t origin_ns, period_ns;
	uint64_t open_ns;		      /* a window is open since then; UINT64_MAX: none is */
	size_t nr;			      /* periods within the recording */
	double share[SITE_PERIODS];	      /* of the blocks that outlived their windows */
	double before_ns[SITE_PERIODS];	      /* the clock at the period's start */
	double observed_before[SITE_PERIODS]; /* the observed time at its start */
	double stands_for[SITE_PERIODS];      /* blocks of the program for each one in the sample */
	double carried_stand_for;	      /* the same, of those from before the recording */
	double open_stand_for;		      /* the same, of those of the open window */
};

/* The share of a site's blocks in the sample, of those that outlived their windows. 1: none did. */
double followed_share(const struct site_windows *windows);

/* @end_ns is when the recording ended. @time and @site's history must outlive @ret. */
void followed_clock_init(struct followed_clock *ret, const struct observed_time *time,
			 const struct site *site, uint64_t origin_ns, uint64_t end_ns);

/* The clock at @time_ns, in seconds. */
double followed_clock_at(const struct followed_clock *clock, uint64_t time_ns);

/*
 * For how many of the program's blocks one of the sample stands that was allocated at @time_ns. One
 * from before the recording, of a window that was open when a segment began, stands for no time.
 */
double followed_clock_stands_for(const struct followed_clock *clock, uint64_t time_ns);

#endif
