/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings that are too short to tell a leak from what a program loads when it starts. */
#include "test/support/judged_program.h"

/* What a command of 20 ms loads, and what it frees. */
static void a_short_recording_shows_no_leak(void **state)
{
	input.end_ns = input.start_ns + SECOND / 50;
	for (size_t i = 0; i < 100; i++) {
		double time_s = 0.0002 * (double)i;

		add(1, 1, 64, time_s, FOREVER);
		add(2, 1, 64, time_s, i % 5 ? 0.000002 : FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_UNCLEAR);
	assert_int_equal(verdict_of(2)->verdict, VERDICT_UNCLEAR);
	assert_false(verdict_of(1)->has_rate);
	assert_true(verdicts.is_too_short);
}

/* On busy CPUs it waits for its turn most of the time: 2 ms of each 40 are its own. */
static void assert_slow_start_shows_no_leak(size_t nr_turns)
{
	input.end_ns = input.start_ns + SECOND / 25 * nr_turns;
	for (size_t i = 0; i < 10 * nr_turns; i++) {
		size_t turn = i / 10;
		double time_s = 0.04 * (double)turn + 0.0002 * (double)(i % 10);

		add(1, 1, 64, time_s, FOREVER);
		add(2, 1, 64, time_s, i % 5 ? 0.000002 : FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_UNCLEAR);
	assert_int_equal(verdict_of(2)->verdict, VERDICT_UNCLEAR);
	assert_true(verdicts.is_too_short);
}

static void a_slow_start_shows_no_leak(void **state)
{
	assert_slow_start_shows_no_leak(10);
}

/* The periods of its history are 17 ms long. */
static void a_slower_start_shows_no_leak(void **state)
{
	assert_slow_start_shows_no_leak(20);
}

/* They are 34 ms long. */
static void the_slowest_start_shows_no_leak(void **state)
{
	assert_slow_start_shows_no_leak(45);
}

/* A program that runs for as long without a pause. */
static void a_leak_of_a_short_program_is_growth(void **state)
{
	input.end_ns = input.start_ns + SECOND * 2 / 5;
	for (size_t i = 0; i < 100; i++)
		add(1, 1, 64, 0.004 * (double)i, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_GROWTH);
	assert_false(verdicts.is_too_short);
}

/* Requests, and four blocks of the last one, allocated so long before the program was killed. */
static void add_requests(double age_s)
{
	input.end_ns = input.start_ns + 2 * SECOND;
	for (size_t i = 0; i < 1500; i++)
		add(1, 1, 120, 0.001 * (double)i, 0.00004);
	for (size_t i = 0; i < 4; i++)
		add(1, 1, 120, 2 - age_s + 0.00001 * (double)i, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
}

/* Without a CPU, a request takes longer than others have taken. */
static void a_request_that_waits_for_a_cpu_is_not_overdue(void **state)
{
	add_requests(0.02);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_UNCLEAR);
}

static void nothing_waits_so_long(void **state)
{
	add_requests(0.3);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_OVERDUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_short_recording_shows_no_leak),
		TEST(a_slow_start_shows_no_leak),
		TEST(a_slower_start_shows_no_leak),
		TEST(the_slowest_start_shows_no_leak),
		TEST(a_leak_of_a_short_program_is_growth),
		TEST(a_request_that_waits_for_a_cpu_is_not_overdue),
		TEST(nothing_waits_so_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
