/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For programs each of whose tests feeds an empty heap of its own. */
#ifndef LEAKTOOLS_TEST_SUPPORT_HEAP_FEED_TESTS_H
#define LEAKTOOLS_TEST_SUPPORT_HEAP_FEED_TESTS_H

#include "test/support/heap_feed.h"

static struct feed feed; /* the running test's */

static inline int setup(void **state)
{
	feed_init(&feed, NULL);
	return 0;
}

static inline int teardown(void **state)
{
	feed_deinit(&feed);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline void check_totals(uint64_t allocations, uint64_t allocated_bytes, uint64_t frees,
				uint64_t freed_bytes)
{
	const struct heap_tracker_stats *stats = feed_stats(&feed);

	assert_int_equal(stats->allocations, allocations);
	assert_int_equal(stats->allocated_bytes, allocated_bytes);
	assert_int_equal(stats->frees, frees);
	assert_int_equal(stats->freed_bytes, freed_bytes);
}

#endif
