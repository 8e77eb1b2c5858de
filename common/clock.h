/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock of all recordings: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef LEAKTOOLS_COMMON_CLOCK_H
#define LEAKTOOLS_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The CPU time that this thread has used. */
static inline uint64_t clock_thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
