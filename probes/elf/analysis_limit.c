/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/analysis_limit.h"

#include "common/clock.h"

#define STEPS_BETWEEN_READS 1000000
#define TIMES_ELAPSED	    4 /* elapsed time per CPU time: the machine may be busy */

static _Thread_local struct {
	bool is_set, is_reached;
	uint64_t cpu_end_ns, end_ns; /* CPU time of the thread, and elapsed time */
	uint64_t steps;		     /* since the clocks were read */
} limit;

void analysis_limit_begin(uint64_t cpu_ns)
{
	limit.is_set = true;
	limit.is_reached = false;
	limit.cpu_end_ns = clock_thread_ns() + cpu_ns;
	limit.end_ns = clock_now_ns() + TIMES_ELAPSED * cpu_ns;
	limit.steps = 0;
}

bool analysis_limit_end(void)
{
	limit.is_set = false;
	return limit.is_reached;
}

bool analysis_limit_is_reached(uint64_t steps)
{
	limit.steps += steps;
	if (!limit.is_set || limit.is_reached || limit.steps < STEPS_BETWEEN_READS)
		return limit.is_set && limit.is_reached;
	limit.steps = 0;
	limit.is_reached = clock_thread_ns() > limit.cpu_end_ns || clock_now_ns() > limit.end_ns;
	return limit.is_reached;
}

void analysis_limit_reach(void)
{
	limit.is_reached = true;
}
