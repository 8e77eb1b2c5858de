// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts of allocation stacks: totals, periods, and the sketch of lifetimes. */
#include "test/support/heap_feed.h"

#include <math.h>
#include <stdlib.h>

#define STACK 7

static struct site_stats *stats;

static int setup(void **state)
{
	stats = site_stats_create();
	return stats ? 0 : -1;
}

static int teardown(void **state)
{
	site_stats_destroy(stats);
	return 0;
}

static void enter(uint64_t size, uint64_t time_ns)
{
	const struct site_block block = {STACK, size, time_ns};

	assert_int_equal(site_stats_enter(stats, &block), 0);
}

static void leave(uint64_t size, uint64_t allocated_ns, uint64_t time_ns)
{
	const struct site_block block = {STACK, size, allocated_ns};

	assert_int_equal(site_stats_leave(stats, &block, time_ns), 0);
}

static void counts_of_a_stack(void **state)
{
	const struct site *site;

	enter(100, 1000);
	enter(50, 2000);
	leave(100, 1000, 5000);
	enter(10, 6000);
	site = site_stats_find(stats, STACK);
	assert_int_equal(site->allocations, 3);
	assert_int_equal(site->frees, 1);
	assert_int_equal(site->allocated_bytes, 160);
	assert_int_equal(site->held_bytes, 60);
	assert_int_equal(site->peak_bytes, 150);
	assert_int_equal(site->peak_blocks, 2);
	assert_int_equal(site->first_ns, 1000);
	assert_int_equal(site->last_ns, 6000);
	assert_int_equal(lifetime_sketch_total(&site->history->lifetimes), 1);
	assert_null(site_stats_find(stats, STACK + 1));
	assert_null(site_stats_find(stats, UINT32_MAX));
}

static void pauses_are_not_busy(void **state)
{
	const uint64_t ms = 1000000;

	enter(1, 1 * ms);
	enter(1, 6 * ms);
	enter(1, 26 * ms);
	assert_int_equal(site_stats_busy_ns(stats), 25 * ms);
	enter(1, 47 * ms);
	/* A part of a block that was split has its age. */
	enter(1, 2 * ms);
	enter(1, 48 * ms);
	assert_int_equal(site_stats_busy_ns(stats), 26 * ms);
}

static void expect_at_peak(uint32_t stack_id, uint64_t bytes, uint64_t blocks)
{
	uint64_t at_peak_bytes, at_peak_blocks;

	site_at_peak(stats, site_stats_find(stats, stack_id), &at_peak_bytes, &at_peak_blocks);
	assert_int_equal(at_peak_bytes, bytes);
	assert_int_equal(at_peak_blocks, blocks);
}

static void the_peak_is_that_of_all_stacks_together(void **state)
{
	const struct site_block other = {STACK + 1, 40, 2000}, late = {STACK + 2, 5, 9000};

	enter(100, 1000);
	assert_int_equal(site_stats_enter(stats, &other), 0);
	enter(50, 3000);
	leave(100, 1000, 4000);
	assert_int_equal(site_stats_exit(stats, &other, 5000), 0);
	enter(70, 6000);
	assert_int_equal(site_stats_enter(stats, &late), 0);
	assert_int_equal(site_stats_peak(stats).bytes, 190);
	assert_int_equal(site_stats_peak(stats).time_ns, 3000);
	expect_at_peak(STACK, 150, 2);
	expect_at_peak(STACK + 1, 40, 1);
	expect_at_peak(STACK + 2, 0, 0);
	/* The process that exited lives after all, so there is a higher peak. */
	site_stats_unexit(stats, &other, 5000);
	enter(30, 10000);
	assert_int_equal(site_stats_peak(stats).bytes, 195);
	expect_at_peak(STACK, 150, 3);
	expect_at_peak(STACK + 2, 5, 1);
}

static void one_allocation_needs_no_history(void **state)
{
	enter(100, 1000);
	assert_null(site_stats_find(stats, STACK)->history);
	/* Its time still counts. */
	enter(100, 1000 + (UINT64_C(3) << 20));
	assert_int_equal(site_stats_find(stats, STACK)->history->periods[0].allocated, 1);
	assert_int_equal(site_stats_find(stats, STACK)->history->periods[3].allocated, 1);
}

/* The blocks held at the end of period @i. */
static int64_t held_at(size_t i)
{
	const struct site_history *history = site_stats_find(stats, STACK)->history;
	int64_t held = 0;

	for (size_t k = 0; k <= i; k++)
		held += history->periods[k].added_bytes;
	return held;
}

static void bytes_are_known_by_period(void **state)
{
	const uint64_t ms = UINT64_C(1) << 20;
	const struct site_block block = {STACK, 30, 2 * ms + 1};

	enter(100, 0 * ms + 1);
	enter(50, 1 * ms + 1);
	enter(30, 2 * ms + 1);
	leave(100, 0 * ms + 1, 3 * ms + 1);
	assert_int_equal(held_at(0), 100);
	assert_int_equal(held_at(1), 150);
	assert_int_equal(held_at(2), 180);
	assert_int_equal(held_at(3), 80);
	/* Undoes the allocation of the one and the free of the other. */
	site_stats_withdraw(stats, &block);
	site_stats_unleave(stats, &(struct site_block){STACK, 100, 1}, 3 * ms + 1);
	assert_int_equal(held_at(2), 150);
	assert_int_equal(held_at(3), 150);
	assert_int_equal(site_stats_vanish(stats, &(struct site_block){STACK, 50, ms + 1}, 9 * ms),
			 0);
	assert_int_equal(held_at(9), 100);
	/* Periods have doubled. */
	enter(7, 100 * ms);
	assert_int_equal(held_at(0), 150);
	assert_int_equal(held_at(4), 100);
	assert_int_equal(held_at(SITE_PERIODS - 1), 107);
	assert_int_equal(site_stats_find(stats, STACK)->held_bytes, 107);
}

static void periods_grow_with_the_recording(void **state)
{
	const struct site_history *history;
	uint64_t start_ns = 123456789, hour_ns = UINT64_C(3600) * 1000000000, sum = 0;

	for (uint64_t i = 0; i <= 100; i++)
		enter(1, start_ns + i * hour_ns);
	leave(1, start_ns, start_ns + 100 * hour_ns);
	history = site_stats_find(stats, STACK)->history;
	assert_true(100 * hour_ns >> history->shift < SITE_PERIODS);
	assert_true(100 * hour_ns >> history->shift >= SITE_PERIODS / 2);
	for (size_t i = 0; i < SITE_PERIODS; i++)
		sum += history->periods[i].allocated;
	assert_int_equal(sum, 101);
	assert_int_equal(history->periods[100 * hour_ns >> history->shift].ended, 1);
	assert_int_equal(site_stats_origin(stats), start_ns);
}

/* As after some days with 300,000 allocations a second. */
static void long_periods_hold_many_blocks(void **state)
{
	const struct site_block other = {STACK + 1, 1, 1};
	const uint64_t many = 3000000000, ms = UINT64_C(1) << 20;
	struct site_history *history;
	struct site sum = {0};

	enter(1, 1);
	enter(1, 2);
	history = site_stats_find(stats, STACK)->history;
	for (size_t i = 0; i < 2; i++) {
		history->periods[i].allocated = many;
		history->periods[i].ended = many;
	}
	enter(1, 65 * ms);
	assert_int_equal(history->periods[0].allocated, 2 * many);
	assert_int_equal(history->periods[0].ended, 2 * many);
	assert_int_equal(site_stats_enter(stats, &other), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(site_stats_sum(stats, &sum, site_stats_find(stats, STACK)), 0);
	assert_int_equal(site_stats_sum(stats, &sum, site_stats_find(stats, STACK + 1)), 0);
	assert_int_equal(sum.history->periods[0].allocated, 4 * many + 1);
	assert_int_equal(sum.history->periods[0].ended, 4 * many);
	site_sum_deinit(&sum);
}

static void what_is_taken_back_leaves_no_trace(void **state)
{
	const struct site_block block = {STACK, 100, 1000};
	const struct site *site;

	enter(7, 500);
	enter(100, 1000);
	leave(100, 1000, 2000);
	site_stats_unleave(stats, &block, 2000);
	site = site_stats_find(stats, STACK);
	assert_int_equal(site->frees, 0);
	assert_int_equal(site->held_bytes, 107);
	assert_int_equal(lifetime_sketch_total(&site->history->lifetimes), 0);
	assert_int_equal(site->history->periods[0].ended, 0);
	site_stats_withdraw(stats, &block);
	assert_int_equal(site->allocations, 1);
	assert_int_equal(site->held_bytes, 7);
	assert_int_equal(site->allocated_bytes, 7);
	assert_int_equal(site->history->periods[0].allocated, 1);
}

static void a_clock_that_steps_back_breaks_nothing(void **state)
{
	enter(1, 1000000);
	enter(1, 10);
	leave(1, 1000000, 10);
	assert_int_equal(site_stats_find(stats, STACK)->frees, 1);
}

static void the_tracker_feeds_it(void **state)
{
	const struct site *site;
	struct feed feed;

	feed_init(&feed, NULL);
	feed.stack_id = STACK;
	feed_malloc(&feed, 64, 0x1000);
	feed_malloc(&feed, 32, 0x2000);
	feed_free(&feed, 0x1000);
	feed_malloc(&feed, 16, 0x2000);	     /* a free was not seen */
	feed_realloc(&feed, 0x2000, 128, 0); /* fails */
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0x2000); /* the child's copy */
	feed_finish(&feed);
	site = site_stats_find(heap_tracker_sites(feed.tracker), STACK);
	assert_int_equal(site->allocations, 3);
	assert_int_equal(site->frees, 1);
	assert_int_equal(site->vanished, 1);
	assert_int_equal(site->held_bytes, 16);
	assert_int_equal(lifetime_sketch_total(&site->history->lifetimes), 1);
	feed_deinit(&feed);
}

static void what_exec_takes_is_not_held(void **state)
{
	const struct site *site;
	struct feed feed;

	feed_init(&feed, NULL);
	feed.stack_id = STACK;
	feed_malloc(&feed, 64, 0x1000);
	feed_malloc(&feed, 32, 0x2000);
	feed_comm(&feed, 100, 100, true, "other");
	feed_malloc(&feed, 16, 0x2000);
	feed_finish(&feed);
	site = site_stats_find(heap_tracker_sites(feed.tracker), STACK);
	assert_int_equal(site->allocations, 3);
	assert_int_equal(site->dropped, 2);
	assert_int_equal(site_held_blocks(site), 1);
	assert_int_equal(site->held_bytes, 16);
	assert_int_equal(site->peak_blocks, 2);
	assert_int_equal(site->vanished, 0);
	feed_deinit(&feed);
}

/* Blocks freed before their thread allocates again, by any thread, whatever others do meanwhile. */
static void temporaries_are_counted(void **state)
{
	struct feed feed;
	const struct site *site;

	feed_init(&feed, NULL);
	feed.stack_id = STACK;
	feed_malloc(&feed, 1, 0xa0);
	feed_free(&feed, 0xa0); /* one */
	feed_malloc(&feed, 1, 0xb0);
	feed_as(&feed, 100, 101);
	feed_malloc(&feed, 1, 0xc0);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xb0); /* two; the allocation by another thread does not matter */
	feed_malloc(&feed, 1, 0xb0);
	feed_malloc(&feed, 1, 0xd0);
	feed_free(&feed, 0xb0); /* not the last */
	feed_free(&feed, 0xd0); /* three; the block before it was not the last one */
	feed_realloc(&feed, 0, 1, 0xe0);
	feed_realloc(&feed, 0xe0, 2, 0xf0); /* continues as another block */
	feed_as(&feed, 100, 101);
	feed_free(&feed, 0xf0); /* not the thread's own */
	feed_finish(&feed);
	site = site_stats_find(heap_tracker_sites(feed.tracker), STACK);
	assert_non_null(site);
	assert_int_equal(site->temporaries, 3);
	feed_deinit(&feed);
}

static void buckets_cover_all_lifetimes(void **state)
{
	uint64_t previous = 0;

	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i++) {
		uint64_t start = lifetime_bucket_start(i);

		assert_int_equal(lifetime_bucket(start), i);
		assert_true(i == 0 || start > previous);
		previous = start;
	}
	assert_int_equal(lifetime_bucket(UINT64_MAX), LIFETIME_BUCKETS - 1);
}

static void every_value_is_within_the_error(void **state)
{
	uint64_t random = 1;

	for (int i = 0; i < 100000; i++) {
		uint64_t ns;
		double value;

		random = random * 6364136223846793005u + 1442695040888963407u;
		ns = random >> (random % 64);
		value = lifetime_bucket_value(lifetime_bucket(ns));
		assert_true(fabs(value - (double)ns) <= LIFETIME_ERROR * (double)ns * 1.0000001);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void quantiles_are_within_the_error(void **state)
{
	static const double quantiles[] = {0, 0.01, 0.5, 0.9, 0.99, 1};
	static uint64_t values[20000];
	size_t nr = sizeof(values) / sizeof(values[0]);
	struct lifetime_sketch sketch = {0}, half = {0};
	uint64_t random = 42;

	for (size_t i = 0; i < nr; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		values[i] = (uint64_t)(1000 *
				       pow(1.0 / ((double)(random >> 11) * 0x1p-53 + 1e-12), 1.3));
		assert_int_equal(lifetime_sketch_add(i % 2 ? &sketch : &half, values[i]), 0);
	}
	assert_int_equal(lifetime_sketch_merge(&sketch, &half), 0);
	assert_int_equal(lifetime_sketch_total(&sketch), nr);
	qsort(values, nr, sizeof(values[0]), compare);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double truth = (double)values[(size_t)(quantiles[i] * (double)(nr - 1))];
		double estimate = lifetime_sketch_quantile(&sketch, quantiles[i]);

		assert_true(fabs(estimate - truth) <= LIFETIME_ERROR * truth * 1.0000001);
	}
	lifetime_sketch_deinit(&sketch);
	lifetime_sketch_deinit(&half);
	assert_true(lifetime_sketch_quantile(&sketch, 0.5) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pauses_are_not_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_of_a_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(the_peak_is_that_of_all_stacks_together, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_allocation_needs_no_history, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_are_known_by_period, setup, teardown),
		cmocka_unit_test_setup_teardown(periods_grow_with_the_recording, setup, teardown),
		cmocka_unit_test_setup_teardown(long_periods_hold_many_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_taken_back_leaves_no_trace, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_steps_back_breaks_nothing, setup,
						teardown),
		cmocka_unit_test(the_tracker_feeds_it),
		cmocka_unit_test(what_exec_takes_is_not_held),
		cmocka_unit_test(temporaries_are_counted),
		cmocka_unit_test(buckets_cover_all_lifetimes),
		cmocka_unit_test(every_value_is_within_the_error),
		cmocka_unit_test(quantiles_are_within_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
