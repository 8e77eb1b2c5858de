/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The held blocks of a site over time, as the heights of a few bars. */
#ifndef LEAKTOOLS_PARSER_HELD_BARS_H
#define LEAKTOOLS_PARSER_HELD_BARS_H

#include "parser/statistics/site_stats.h"

#define HELD_BARS_MAX	16
#define HELD_BARS_UNITS 1000 /* the height of the highest bar */

/*
 * Fills @ret with the heights of @nr bars, at most HELD_BARS_MAX, for the time from the start of
 * the first period, @origin_ns, to @end_ns. 0: nothing was held; else at least 1. Returns false if
 * the site has no history.
 */
bool held_bars(const struct site *site, uint64_t origin_ns, uint64_t end_ns, uint16_t *ret,
	       size_t nr);

/* A bar as a character: " ", "▁" to "█"; without @utf8: ".", "1" to "9". */
const char *held_bar_text(uint16_t height, bool utf8);

#endif
