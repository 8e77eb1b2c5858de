/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a recorder tells whoever shows the recording while it goes on (top/), besides the recording:
 * in memory that both have mapped.
 */
#ifndef LEAKTOOLS_COMMON_LIVE_STATUS_H
#define LEAKTOOLS_COMMON_LIVE_STATUS_H

#include <stdint.h>

struct live_status {
	uint64_t lost;	    /* samples */
	uint64_t pauses;    /* of the recorded processes */
	uint64_t paused_ns; /* in all */
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
