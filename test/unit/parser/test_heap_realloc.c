/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Effects of realloc() on the heap. */
#include "test/support/heap_feed_tests.h"

#include <string.h>

static void realloc_moves(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 20, 0xb0);
	assert_int_equal(feed_only_held(&feed)->address, 0xb0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
	assert_string_equal(feed_only_held(&feed)->allocated.schema->function, "realloc");
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	check_totals(2, 30, 2, 30);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void realloc_stays(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 20, 0xa0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
	feed_finish(&feed);
	check_totals(2, 30, 1, 10);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void realloc_of_null_is_malloc(void **state)
{
	feed_realloc(&feed, 0, 20, 0xa0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
	feed_finish(&feed);
	check_totals(1, 20, 0, 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

/* Other blocks of such sizes are not recorded: what is held of them is not known. */
static void realloc_out_of_the_recorded_sizes_is_free(void **state)
{
	const struct size_range sizes = {10, 20};

	heap_tracker_limit_sizes(feed.tracker, &sizes);
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 30, 0xb0);
	assert_int_equal(feed_nr_held(&feed), 0);
	feed_realloc(&feed, 0xb0, 20, 0xc0);
	assert_int_equal(feed_only_held(&feed)->address, 0xc0);
	feed_realloc(&feed, 0xc0, 40, 0xa0);
	feed_free(&feed, 0xa0);
	feed_malloc(&feed, 12, 0xd0);
	feed_realloc(&feed, 0xd0, 50, 0xd0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void realloc_to_zero_is_free(void **state)
{
	uint64_t first;

	feed_malloc(&feed, 10, 0xa0);
	first = feed_entry(&feed, "realloc", 0xa0, 0, 0);
	feed_return(&feed, "realloc", 0);
	assert_int_equal(feed_nr_held(&feed), 0);
	check_totals(1, 10, 1, 10);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_int_equal(feed_only_anomaly(&feed)->released.sequence, first);
}

static void realloc_to_zero_may_be_a_block(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 0, 0xb0);
	assert_int_equal(feed_only_held(&feed)->address, 0xb0);
	check_totals(2, 10, 1, 10);
}

static void failed_realloc_leaves_the_old_block(void **state)
{
	struct heap_block before;

	feed_malloc(&feed, 10, 0xa0);
	before = *feed_only_held(&feed);
	feed_realloc(&feed, 0xa0, 1000, 0);
	assert_memory_equal(feed_only_held(&feed), &before, sizeof(before));
	check_totals(1, 10, 0, 0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_ALLOC_FAILED);
	assert_int_equal(feed_only_anomaly(&feed)->address, 0xa0);
	check_totals(1, 10, 1, 10);
}

static void failed_realloc_does_not_touch_a_new_owner(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 1000, 0);
	feed_as(&feed, 100, 101);
	feed_malloc(&feed, 7, 0xa0);
	feed_as(&feed, 100, 100);
	feed_return(&feed, "realloc", 0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 7);
	check_totals(2, 17, 1, 10);
}

static void old_block_may_be_handed_out_during_realloc(void **state)
{
	const struct heap_block *blocks;

	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0);
	feed_as(&feed, 100, 101);
	feed_malloc(&feed, 7, 0xa0);
	feed_as(&feed, 100, 100);
	feed_return(&feed, "realloc", 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_held(&feed, &blocks), 2);
	assert_int_equal(blocks[0].address, 0xa0);
	assert_int_equal(blocks[1].address, 0xb0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void realloc_of_an_unknown_block(void **state)
{
	feed_realloc(&feed, 0xa0, 20, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_REALLOC_UNKNOWN);
	assert_int_equal(feed_only_anomaly(&feed)->address, 0xa0);
	assert_int_equal(feed_only_held(&feed)->address, 0xb0);
	check_totals(1, 20, 0, 0);
}

static void realloc_of_a_freed_block(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_free(&feed, 0xa0);
	feed_realloc(&feed, 0xa0, 20, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_string_equal(feed_only_anomaly(&feed)->op.schema->function, "realloc");
}

/* Calls within calls */

static void realloc_of_null_calls_malloc(void **state)
{
	/* glibc jumps there, so malloc's entry shows the return probe's trampoline. */
	feed_entry(&feed, "realloc", 0, 20, 0);
	feed.caller = 0x7fffffffe000;
	feed_entry(&feed, "malloc", 20, 0, 0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "malloc", 0xa0);
	feed.stack_id = 3;
	feed_return(&feed, "realloc", 0xa0);
	feed_finish(&feed);
	assert_string_equal(feed_only_held(&feed)->allocated.schema->function, "realloc");
	assert_int_equal(feed_only_held(&feed)->allocated.stack_id, 3);
	assert_int_equal(feed_only_held(&feed)->allocated.sequence, 4);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
	check_totals(1, 20, 0, 0);
}

static void inner_calls_of_realloc(void **state)
{
	/* glibc, a mapped block: malloc, copy, unmap; others free() the old block. */
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 20, 0xb0);
	feed_free(&feed, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0xb0);
	feed_finish(&feed);
	assert_string_equal(feed_only_held(&feed)->allocated.schema->function, "realloc");
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	check_totals(2, 30, 1, 10);
}

static void realloc_to_zero_calls_free(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 0, 0);
	feed.caller = FEED_IN_LIBC;
	feed_free(&feed, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	check_totals(1, 10, 1, 10);
}

static void unknown_block_freed_inside_realloc(void **state)
{
	feed_entry(&feed, "realloc", 0xa0, 0, 0);
	feed.caller = FEED_IN_LIBC;
	feed_free(&feed, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_REALLOC_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(realloc_moves),
		TEST(realloc_stays),
		TEST(realloc_of_null_is_malloc),
		TEST(realloc_out_of_the_recorded_sizes_is_free),
		TEST(realloc_to_zero_is_free),
		TEST(realloc_to_zero_may_be_a_block),
		TEST(failed_realloc_leaves_the_old_block),
		TEST(failed_realloc_does_not_touch_a_new_owner),
		TEST(old_block_may_be_handed_out_during_realloc),
		TEST(realloc_of_an_unknown_block),
		TEST(realloc_of_a_freed_block),
		TEST(realloc_of_null_calls_malloc),
		TEST(inner_calls_of_realloc),
		TEST(realloc_to_zero_calls_free),
		TEST(unknown_block_freed_inside_realloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
