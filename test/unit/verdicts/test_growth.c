// SPDX-License-Identifier: GPL-2.0-or-later
/* Edge cases of how blocks arrive and how long they survive. */
#include "parser/judging/growth.h"
#include "parser/statistics/survival.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MAX_ARRIVALS 2000
#define SECOND	     UINT64_C(1000000000)

static struct arrival arrivals[MAX_ARRIVALS];
static struct growth_rate rate;

/* @nr blocks of 100 bytes, evenly from @from_s until before @to_s, of 1000 s. */
static enum growth_pattern even(size_t nr, double from_s, double to_s)
{
	for (size_t i = 0; i < nr; i++)
		arrivals[i] =
			(struct arrival){from_s + (to_s - from_s) * (double)i / (double)nr, 100};
	return growth_fit(arrivals, nr, 0, 1000, &rate);
}

static void steady(void **state)
{
	assert_int_equal(even(1000, 0, 1000), GROWTH_STEADY);
	assert_true(fabs(rate.blocks_per_s - 1) < 0.01);
	assert_true(fabs(rate.bytes_per_s - 100) < 1);
	assert_true(rate.blocks_error > 0.02 && rate.blocks_error < 0.1);
	assert_true(rate.bytes_error >= rate.blocks_error * 100 * 0.99);
	assert_int_equal(even(7, 0, 1000), GROWTH_STEADY);
}

/* From 0 to 1. */
static double draw(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*seed >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

/* Half of the blocks would tell the rate in four of five cases. */
static void all_blocks_tell_the_rate(void **state)
{
	size_t nr_steady = 0, nr_near = 0;
	uint64_t seed = 1;

	for (size_t i = 0; i < 1000; i++) {
		size_t nr = 0;

		for (double at_s = 0; (at_s -= log(draw(&seed)) * 1000 / 54) < 1000;)
			arrivals[nr++] = (struct arrival){at_s, 100};
		if (growth_fit(arrivals, nr, 0, 1000, &rate) != GROWTH_STEADY)
			continue;
		nr_steady++;
		nr_near += fabs(rate.blocks_per_s / 0.054 - 1) <= 0.25;
	}
	assert_true(nr_steady >= 990);
	assert_true((double)nr_near >= 0.87 * (double)nr_steady);
}

/* Three blocks a second, then one. */
static void what_has_slowed_down_has_the_later_rate(void **state)
{
	for (size_t i = 0; i < 400; i++)
		arrivals[i] = (struct arrival){i < 300 ? (double)i / 3 : (double)i - 200, 100};
	assert_int_equal(growth_fit(arrivals, 400, 0, 200, &rate), GROWTH_STEADY);
	assert_true(fabs(rate.blocks_per_s - 1) < 0.02);
}

static void that_began_late(void **state)
{
	assert_int_equal(even(200, 800, 1000), GROWTH_STEADY);
	assert_true(fabs(rate.blocks_per_s - 1) < 0.02);
	/* Too late: it may be a burst. */
	assert_int_equal(even(200, 970, 1000), GROWTH_BURST);
}

static void that_ended(void **state)
{
	assert_int_equal(even(500, 0, 600), GROWTH_STOPPED);
	assert_int_equal(even(500, 0, 90), GROWTH_AT_START);
	assert_int_equal(even(500, 300, 340), GROWTH_BURST);
	assert_int_equal(even(3, 300, 800), GROWTH_FEW);
	assert_int_equal(even(2, 0, 1000), GROWTH_FEW);
	assert_int_equal(even(1, 10, 11), GROWTH_AT_START);
	assert_int_equal(even(0, 0, 1000), GROWTH_FEW);
}

static void a_slow_leak_after_a_start(void **state)
{
	size_t nr = 1000;

	for (size_t i = 0; i < nr; i++)
		arrivals[i] = (struct arrival){0.01 * (double)i, 10};
	for (size_t i = 0; i < 100; i++)
		arrivals[nr++] = (struct arrival){10 + 9.9 * (double)i, 10};
	assert_int_equal(growth_fit(arrivals, nr, 0, 1000, &rate), GROWTH_STEADY);
	assert_true(fabs(rate.blocks_per_s - 0.1) < 0.02);
}

/* 8 blocks at the start are no part of a rate, even if that differs from it by chance only. */
static void a_slow_leak_after_a_small_start(void **state)
{
	for (size_t i = 0; i < 8; i++)
		arrivals[i] = (struct arrival){0.01 * (double)i, 10};
	for (size_t i = 0; i < 22; i++)
		arrivals[8 + i] = (struct arrival){20 + 45 * (double)i, 10};
	assert_int_equal(growth_fit(arrivals, 30, 0, 1000, &rate), GROWTH_STEADY);
	assert_true(fabs(rate.blocks_per_s - 0.022) < 0.002);
}

static void clumps_make_the_error_larger(void **state)
{
	double error;

	even(1000, 0, 1000);
	error = rate.blocks_error;
	for (size_t i = 0; i < 1000; i++) {
		size_t clump = i / 50, at_ms = clump * 50000 + clump % 3 * 7000 + i % 50;

		arrivals[i] = (struct arrival){(double)at_ms * 1e-3, 100};
	}
	assert_int_equal(growth_fit(arrivals, 1000, 0, 1000, &rate), GROWTH_STEADY);
	assert_true(rate.blocks_error > 3 * error);
}

static void time_that_is_none(void **state)
{
	arrivals[0] = (struct arrival){5, 1};
	assert_int_equal(growth_fit(arrivals, 1, 0, 0, &rate), GROWTH_FEW);
	assert_int_equal(growth_fit(arrivals, 1, 10, 3, &rate), GROWTH_FEW);
}

/* @nr blocks a second for 100 s, each freed after @lives_ns if the recording lasts. */
static struct site_stats *churn(uint64_t nr, uint64_t life_ns, struct survival *survival)
{
	struct site_stats *stats = site_stats_create();

	assert_non_null(stats);
	for (uint64_t i = 0; i < 100 * nr; i++) {
		const struct site_block block = {1, 10, SECOND + i * (SECOND / nr)};

		assert_int_equal(site_stats_enter(stats, &block), 0);
		if (block.time_ns + life_ns < 101 * SECOND)
			assert_int_equal(site_stats_leave(stats, &block, block.time_ns + life_ns),
					 0);
	}
	survival_init(survival, site_stats_find(stats, 1), site_stats_origin(stats), 101 * SECOND);
	return stats;
}

static void opportunities(void **state)
{
	struct survival survival;
	struct site_stats *stats = churn(10, SECOND, &survival);

	assert_true(fabs(survival_opportunities(&survival, 0) - 1000) < 20);
	assert_true(fabs(survival_opportunities(&survival, 50e9) - 500) < 20);
	assert_true(fabs(survival_opportunities(&survival, 99e9) - 10) < 20);
	assert_true(survival_opportunities(&survival, 200e9) == 0);
	site_stats_destroy(stats);
}

static void what_long_lives_let_expect(void **state)
{
	struct survival survival;
	/* 600 of 1000 had time to be freed; none is expected to stay forever. */
	struct site_stats *stats = churn(10, 40 * SECOND, &survival);

	assert_true(fabs(survival.weight_from[0] - 1000) < 60);
	assert_true(survival_expected(&survival, 20e9) > 400);
	site_stats_destroy(stats);
}

static void what_short_lives_let_expect(void **state)
{
	struct survival survival;
	struct site_stats *stats = churn(100, 1000, &survival);

	assert_true(survival_expected(&survival, 10e9) < 1e-6);
	assert_true(survival_expected(&survival, 500) > 9000);
	site_stats_destroy(stats);
}

static void a_few_lives_let_expect_little(void **state)
{
	struct survival survival;
	struct site_stats *stats = site_stats_create();

	for (uint64_t i = 0; i < 3; i++) {
		const struct site_block block = {1, 10, SECOND + i};

		assert_int_equal(site_stats_enter(stats, &block), 0);
		assert_int_equal(site_stats_leave(stats, &block, 2 * SECOND), 0);
	}
	survival_init(&survival, site_stats_find(stats, 1), SECOND, 100 * SECOND);
	assert_in_range((uint64_t)(1e6 * survival_expected(&survival, 10e9)), 1000, 300000);
	site_stats_destroy(stats);
}

static void chances(void **state)
{
	assert_true(survival_log_chance(3, 5) == 0);
	assert_true(survival_log_chance(100, 1) < -300);
	assert_true(isinf(survival_log_chance(1, 0)));
	/* Never below the truth: 1 - exp(-0.1) for one or more if 0.1 are expected. */
	assert_true(survival_log_chance(1, 0.1) > log(1 - exp(-0.1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady),
		cmocka_unit_test(all_blocks_tell_the_rate),
		cmocka_unit_test(what_has_slowed_down_has_the_later_rate),
		cmocka_unit_test(that_began_late),
		cmocka_unit_test(that_ended),
		cmocka_unit_test(a_slow_leak_after_a_start),
		cmocka_unit_test(a_slow_leak_after_a_small_start),
		cmocka_unit_test(clumps_make_the_error_larger),
		cmocka_unit_test(time_that_is_none),
		cmocka_unit_test(opportunities),
		cmocka_unit_test(what_long_lives_let_expect),
		cmocka_unit_test(what_short_lives_let_expect),
		cmocka_unit_test(a_few_lives_let_expect_little),
		cmocka_unit_test(chances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
