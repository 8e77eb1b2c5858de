/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/analysis_limit.h"

#include "common/clock.h"

#define STEPS_BETWEEN_READS 1000000
/*
 * Elapsed time per CPU time: the machine may be busy. Processes that are recorded wait for the
 * analysis of a file that they have just mapped, which has a short limit.
 */
#define TIMES_ELAPSED	    15
#define TIMES_ELAPSED_SHORT 4

static _Thread_local struct {
	bool is_set, is_reached;
	uint64_t cpu_end_ns, end_ns; /* CPU time of the thread, and elapsed time */
	uint64_t steps;		     /* since the clocks were read */
	void (*pause)(void *context);
	void *context;
	uint64_t paused_ns, counted_ns; /* CPU time */
} limit;

void analysis_limit_set_pause(void (*pause)(void *context), void *context)
{
	limit.pause = pause;
	limit.context = context;
}

uint64_t analysis_limit_thread_ns(void)
{
	return clock_thread_ns() - limit.paused_ns + limit.counted_ns;
}

void analysis_limit_count(uint64_t cpu_ns)
{
	limit.counted_ns += cpu_ns;
}

uint64_t analysis_limit_elapsed_ns(uint64_t cpu_ns)
{
	return cpu_ns * (cpu_ns < ANALYSIS_LIMIT_NS ? TIMES_ELAPSED_SHORT : TIMES_ELAPSED);
}

void analysis_limit_begin(uint64_t cpu_ns)
{
	limit.is_set = true;
	limit.is_reached = false;
	limit.cpu_end_ns = analysis_limit_thread_ns() + cpu_ns;
	limit.end_ns = clock_now_ns() + analysis_limit_elapsed_ns(cpu_ns);
	limit.steps = 0;
}

bool analysis_limit_end(void)
{
	limit.is_set = false;
	return limit.is_reached;
}

void analysis_limit_pause(void *unused)
{
	uint64_t begin_ns = clock_thread_ns();

	(void)unused;
	if (!limit.pause)
		return;
	limit.pause(limit.context);
	limit.paused_ns += clock_thread_ns() - begin_ns;
}

bool analysis_limit_is_reached(uint64_t steps)
{
	limit.steps += steps;
	if (!limit.is_set || limit.is_reached || limit.steps < STEPS_BETWEEN_READS)
		return limit.is_set && limit.is_reached;
	limit.steps = 0;
	analysis_limit_pause(NULL);
	limit.is_reached =
		analysis_limit_thread_ns() > limit.cpu_end_ns || clock_now_ns() > limit.end_ns;
	return limit.is_reached;
}

void analysis_limit_reach(void)
{
	limit.is_reached = true;
}
