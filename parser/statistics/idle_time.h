/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the program worked, as far as its allocations tell. */
#ifndef LEAKTOOLS_PARSER_IDLE_TIME_H
#define LEAKTOOLS_PARSER_IDLE_TIME_H

#include "parser/statistics/site_stats.h"

/* The rate of the work, as a share of the mean, below which a program or a site is idle. */
#define IDLE_ACTIVE_SHARE 0.05

/*
 * Returns when the program became idle, or @end_ns: it was not, or for too long. @all, with a
 * history, has the sums of all sites. A leak that ends with the work has not stopped, even if the
 * program goes on doing a little.
 */
uint64_t idle_since_ns(const struct site_stats *stats, const struct site *all, uint64_t end_ns);

#endif
