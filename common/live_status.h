/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that a running recorder shows the viewer (top/) or the live parser (report/live/), in
 * memory that both processes have mapped. The events themselves come through a pipe.
 */
#ifndef LEAKTOOLS_COMMON_LIVE_STATUS_H
#define LEAKTOOLS_COMMON_LIVE_STATUS_H

#include <stdint.h>

struct live_status {
	uint64_t start_ns;  /* CLOCK_MONOTONIC; 0 while the recorder sets up */
	uint64_t lost;	    /* samples */
	uint64_t may_miss;  /* 1: there may be more of them */
	uint64_t unguarded; /* tasks and files whose releases may be missing */
	uint64_t pauses;    /* of the recorded processes */
	uint64_t paused_ns; /* total */
	uint64_t left_out;  /* samples that are not in the pipe: the live parser was too slow */
	uint64_t cpu_ns;    /* that the recorder has used */
};

static inline void live_status_set(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static inline uint64_t live_status_get(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

#endif
