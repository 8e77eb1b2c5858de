/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock of all recordings: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef LEAKTOOLS_COMMON_CLOCK_H
#define LEAKTOOLS_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The CPU time that this thread has used. */
static inline uint64_t clock_thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The same of all threads of this process. */
static inline uint64_t clock_process_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
