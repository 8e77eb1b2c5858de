/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/idle_time.h"

#include <math.h>

/* A program that is idle for longer at the end, as a share of the recording, has stopped. */
#define IDLE_SHARE 0.2

uint64_t idle_since_ns(const struct site_stats *stats, const struct site *all, uint64_t end_ns)
{
	const struct site_history *history = all->history;
	uint64_t origin_ns = site_stats_origin(stats), period_ns = 1ULL << history->shift;
	size_t nr_sites;
	const struct site *sites = site_stats_list(stats, &nr_sites);
	uint64_t nr, earliest, first, idle_ns, work_ns = 0;
	double allocated = 0;

	if (end_ns <= origin_ns)
		return end_ns;
	nr = ((end_ns - origin_ns) >> history->shift) + 1;
	earliest = (uint64_t)ceil((double)nr * (1 - IDLE_SHARE));
	/* Nothing was allocated after the periods that are kept. */
	first = nr < SITE_PERIODS ? nr : SITE_PERIODS;
	for (uint64_t i = first; i-- > 0 && i + 1 >= earliest;) {
		allocated += history->periods[i].allocated;
		if (allocated <
		    IDLE_ACTIVE_SHARE * (double)all->allocations * (double)(nr - i) / (double)nr)
			first = i;
	}
	if (first == nr || first < earliest)
		return end_ns;
	idle_ns = origin_ns + first * period_ns;
	/* The work ended within the period before. */
	for (size_t i = 0; i < nr_sites; i++)
		if (sites[i].last_ns <= idle_ns && sites[i].last_ns > work_ns)
			work_ns = sites[i].last_ns;
	return work_ns + period_ns < idle_ns ? idle_ns : work_ns;
}
