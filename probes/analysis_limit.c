/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/analysis_limit.h"

#include <stddef.h>
#include <time.h>

#define STEPS_BETWEEN_LOOKS 1000000
#define TIMES_ELAPSED	    4 /* as much time as of the CPU: the machine may be busy */

static _Thread_local struct {
	bool is_set, is_reached;
	uint64_t cpu_end_ns, end_ns; /* of the thread's clock, and of time */
	uint64_t steps;		     /* since the clocks were looked at */
} limit;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void analysis_limit_begin(uint64_t cpu_ns)
{
	limit.is_set = true;
	limit.is_reached = false;
	limit.cpu_end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
	limit.end_ns = now_ns(CLOCK_MONOTONIC) + TIMES_ELAPSED * cpu_ns;
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
	if (!limit.is_set || limit.is_reached || limit.steps < STEPS_BETWEEN_LOOKS)
		return limit.is_set && limit.is_reached;
	limit.steps = 0;
	limit.is_reached = now_ns(CLOCK_THREAD_CPUTIME_ID) > limit.cpu_end_ns ||
			   now_ns(CLOCK_MONOTONIC) > limit.end_ns;
	return limit.is_reached;
}

void analysis_limit_reach(void)
{
	limit.is_reached = true;
}
