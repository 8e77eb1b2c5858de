/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clocks of recordings in windows. */
#include "parser/windows/followed_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static void counts_observed_time(void **state)
{
	struct observed_time time = {0};

	assert_int_equal(observed_time_before(&time, 5), 5);
	assert_false(observed_time_has_gap(&time, 1, 5));
	assert_int_equal(observed_time_open(&time, 100), 0);
	assert_int_equal(observed_time_before(&time, 150), 50);
	observed_time_close(&time, 200, 0);
	assert_int_equal(observed_time_open(&time, 400), 0);
	observed_time_close(&time, 500, 0);
	assert_int_equal(observed_time_before(&time, 50), 0);
	assert_int_equal(observed_time_before(&time, 150), 50);
	assert_int_equal(observed_time_before(&time, 300), 100);
	assert_int_equal(observed_time_before(&time, 450), 150);
	assert_int_equal(observed_time_before(&time, 600), 200);
	assert_false(observed_time_has_gap(&time, 110, 190));
	assert_true(observed_time_has_gap(&time, 190, 410));
	assert_true(observed_time_has_gap(&time, 250, 300));
	observed_time_deinit(&time);
}

/* A window counts by the program's pace in it; while none is known, as long as it was. */
static void counts_by_pace(void **state)
{
	struct observed_time time = {0};

	assert_int_equal(observed_time_paced_before(&time, 5), 5);
	assert_int_equal(observed_time_open(&time, 100), 0);
	assert_int_equal(observed_time_paced_before(&time, 150), 50);
	observed_time_close(&time, 200, 0);
	assert_int_equal(observed_time_paced_before(&time, 300), 100);
	assert_false(time.has_paces);
	assert_int_equal(observed_time_open(&time, 400), 0);
	observed_time_close(&time, 500, 100);
	assert_true(time.has_paces);
	assert_int_equal(observed_time_open(&time, 600), 0);
	observed_time_close(&time, 700, UINT64_MAX);
	assert_int_equal(observed_time_paced_before(&time, 450), 15);
	assert_int_equal(observed_time_paced_before(&time, 550), 20);
	assert_in_range(observed_time_paced_before(&time, 800), 20, 20 + 100 * 100);
	assert_int_equal(observed_time_before(&time, 800), 300);
	assert_true(observed_time_has_gap(&time, 0, 500));
	observed_time_deinit(&time);
}

/*
 * An idle program begins to work in a window, which counts by the pace that the next one shows.
 * Windows before it saw nearly all that the program did. The same later: readers may not have the
 * first part of a recording.
 */
static void a_known_pace_is_also_that_of_the_window_before(void **state)
{
	static const uint64_t paces[] = {0, 0, 0, 100, 0, 0, 200, 1000, 300};
	static const uint64_t lengths[] = {100, 100, 10, 10, 100, 20, 20, 100, 30};
	struct observed_time time = {0};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < sizeof(paces) / sizeof(*paces); i++) {
		assert_int_equal(observed_time_open(&time, 1000 * i), 0);
		observed_time_close(&time, 1000 * i + 100, paces[i]);
	}
	for (uint64_t i = 0; i < sizeof(paces) / sizeof(*paces); i++) {
		assert_int_equal(observed_time_paced_before(&time, 1000 * i + 50),
				 sum + lengths[i] / 2);
		sum += lengths[i];
		assert_int_equal(observed_time_paced_before(&time, 1000 * (i + 1)), sum);
	}
	observed_time_deinit(&time);
}

static void bounds_the_clock(void **state)
{
	struct observed_time time = {0};
	const uint64_t nr = 100000;

	for (uint64_t i = 0; i < nr; i++) {
		assert_int_equal(observed_time_open(&time, i * S), 0);
		observed_time_close(&time, i * S + 20 * MS, 0);
	}
	assert_true(time.nr <= OBSERVED_MAX_WINDOWS);
	assert_int_equal(time.nr_opened, nr);
	assert_int_equal(observed_time_before(&time, nr * S), nr * 20 * MS);
	for (uint64_t i = 0; i < nr; i += 997) {
		int64_t error =
			(int64_t)observed_time_before(&time, i * S) - (int64_t)(i * 20 * MS);

		assert_true(llabs(error) <= (int64_t)(32 * 20 * MS));
	}
	assert_true(observed_time_has_gap(&time, 0, S));
	observed_time_deinit(&time);
}

/* One block outlives each window, and each 30th of them is in the sample. */
static void stands_for_periods_without_a_sample(void **state)
{
	struct site_stats *sites = site_stats_create();
	struct observed_time time = {0};
	struct followed_clock clock;
	double sum = 0;

	assert_non_null(sites);
	for (uint64_t i = 0; i < 600; i++) {
		const struct site_block block = {1, 64, S + i * S + MS};
		uint64_t close_ns = S + i * S + 20 * MS;

		assert_int_equal(observed_time_open(&time, S + i * S), 0);
		observed_time_close(&time, close_ns, 0);
		assert_int_equal(site_stats_enter(sites, &block), 0);
		assert_int_equal(site_stats_outlive(sites, &block, close_ns), 0);
		if (i % 30 == 7)
			site_stats_follow(sites, &block, close_ns);
		else
			assert_int_equal(site_stats_lose_sight(sites, &block, close_ns), 0);
	}
	followed_clock_init(&clock, &time, site_stats_find(sites, 1), S, 601 * S);
	for (uint64_t i = 7; i < 600; i += 30)
		sum += followed_clock_stands_for(&clock, S + i * S + MS);
	assert_in_range(sum, 30000 - 1500, 30000 + 1500);
	site_stats_destroy(sites);
	observed_time_deinit(&time);
}

/*
 * A leak of a block a second. The program is idle at night, so that one window lasts as long; but
 * many other stacks are in its sample. By day, a window a second is open for 10 ms: a block in a
 * hundred outlives one, and every third of these is in the sample.
 */
static void assert_rare_windows_stand_for(uint64_t night_s, uint64_t day_s)
{
	uint64_t length_s = night_s + day_s;
	static struct site_windows windows;
	struct site_history history = {.windows = &windows, .shift = 20};
	const struct site site = {.history = &history};
	struct observed_time time = {0};
	struct followed_clock clock;
	double sum = 0;

	windows = (struct site_windows){0};
	while (((length_s + 1) * S) >> history.shift >= SITE_PERIODS)
		history.shift++;
	assert_int_equal(observed_time_open(&time, S), 0);
	observed_time_close(&time, S + night_s * S, 0);
	for (uint64_t i = 0; i < night_s; i++)
		windows.outlived[i * S >> history.shift]++;
	for (uint64_t i = night_s; i < length_s; i++) {
		assert_int_equal(observed_time_open(&time, S + i * S), 0);
		observed_time_close(&time, S + i * S + 10 * MS, 0);
		if (i % 100 == 50)
			windows.outlived[i * S >> history.shift]++;
		if (i % 300 == 50)
			windows.followed[i * S >> history.shift]++;
	}
	followed_clock_init(&clock, &time, &site, S, S + length_s * S);
	for (uint64_t i = night_s; i < length_s; i++)
		if (i % 300 == 50)
			sum += followed_clock_stands_for(&clock, S + i * S + MS);
	print_message("%.0f blocks, by the sample %.0f\n", (double)length_s, sum);
	assert_true(sum > (double)length_s / 1.5);
	assert_true(sum < (double)length_s * 1.5);
	observed_time_deinit(&time);
}

static void stands_for_a_time_with_other_windows(void **state)
{
	for (uint64_t night_s = 3600; night_s <= 36000; night_s += 7200)
		for (uint64_t day_s = 1800; day_s <= 36000; day_s += 4500)
			assert_rare_windows_stand_for(night_s, day_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_observed_time),
		cmocka_unit_test(counts_by_pace),
		cmocka_unit_test(a_known_pace_is_also_that_of_the_window_before),
		cmocka_unit_test(bounds_the_clock),
		cmocka_unit_test(stands_for_periods_without_a_sample),
		cmocka_unit_test(stands_for_a_time_with_other_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
