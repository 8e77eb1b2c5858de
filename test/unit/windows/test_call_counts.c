/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of counted calls, and the rate that follows from it. */
#include "parser/verdicts/counted_rates.h"
#include "parser/windows/call_counts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define S     UINT64_C(1000000000)
#define START (100 * S)
#define CALL  3

static struct call_counts counts;

static int end(void **state)
{
	call_counts_deinit(&counts);
	return 0;
}

/* Function 1 of process 7, counted since the start. */
static struct call_sample sample_at(uint64_t time_ns, uint64_t all)
{
	return (struct call_sample){
		.number = 1,
		.pid = 7,
		.call_id = CALL,
		.time_ns = time_ns,
		.since_ns = START,
		.all = all,
		.observed = all / 100,
		.blocks = all / 200,
	};
}

static void add(struct call_sample sample)
{
	assert_int_equal(call_counts_add(&counts, &sample, START), 0);
}

static bool sum(uint64_t from_s, uint64_t to_s, struct call_sum *ret)
{
	return call_counts_sum(&counts, CALL, START + from_s * S, START + to_s * S, ret);
}

static void assert_rate(uint64_t from_s, uint64_t to_s, double expected, double share)
{
	struct call_sum got;

	assert_true(sum(from_s, to_s, &got));
	if (fabs(got.calls_per_s / expected - 1) > share)
		fail_msg("%g, not %g", got.calls_per_s, expected);
}

/* 10 calls a second, later 30: whatever was thinned, both halves are known. */
static void a_long_history_stays_even(void **state)
{
	uint64_t all = 0;

	for (uint64_t i = 1; i <= 10000; i++) {
		all += i <= 5000 ? 10 : 30;
		add(sample_at(START + i * S, all));
	}
	assert_in_range(counts.of[1]->nr, CALL_POINTS_MAX / 2, CALL_POINTS_MAX);
	assert_rate(0, 5000, 10, 0.05);
	assert_rate(5000, 10000, 30, 0.05);
	assert_rate(0, 10000, 20, 1e-9);
	assert_rate(7500, 9990, 30, 1e-3);
}

static void what_was_not_counted_is_not_known(void **state)
{
	struct call_sample sample;
	struct call_sum got;

	for (uint64_t i = 60; i <= 90; i++) {
		sample = sample_at(START + i * S, 7 * (i - 50));
		sample.since_ns = START + 50 * S;
		add(sample);
	}
	assert_rate(50, 90, 7, 1e-6);
	assert_rate(20, 90, 7, 1e-6);
	assert_false(sum(0, 90, &got));
	/* The process may have ended. */
	assert_false(sum(50, 100, &got));
	assert_rate(50, 92, 7, 1e-6);
	assert_false(sum(0, 40, &got));
	assert_false(sum(60, 60, &got));
	assert_false(sum(80, 60, &got));
	assert_false(call_counts_sum(&counts, CALL + 1, START, START + 90 * S, &got));
}

/* What was counted before the recording began came at an unknown time. */
static void counts_from_before_are_left_out(void **state)
{
	struct call_sample sample;

	for (uint64_t i = 1; i <= 100; i++) {
		sample = sample_at(START + i * S, 1000000 + 5 * i);
		sample.since_ns = START - 50 * S;
		add(sample);
	}
	assert_rate(0, 100, 5, 1e-6);
}

static void another_count_begins_anew(void **state)
{
	struct call_sample sample;

	for (uint64_t i = 1; i <= 20; i++)
		add(sample_at(START + i * S, 1000 * i));
	/* The process has executed another program. */
	for (uint64_t i = 21; i <= 100; i++) {
		sample = sample_at(START + i * S, 2 * (i - 20));
		sample.since_ns = START + 20 * S;
		add(sample);
	}
	assert_rate(20, 100, 2, 1e-6);
	assert_int_equal(counts.of[1]->points[0].all, 0);
	/* A counter falls. */
	add(sample_at(START + 101 * S, 50));
	add(sample_at(START + 102 * S, 10));
	assert_int_equal(counts.of[1]->nr, 2);
	/* Another function has its place. */
	sample = sample_at(START + 103 * S, 7);
	sample.number = 1 + CALL_COUNTS_MAX;
	add(sample);
	assert_int_equal(counts.of[1]->last.number, 1 + CALL_COUNTS_MAX);
	assert_int_equal(counts.of[1]->nr, 2);
}

static void processes_add_up(void **state)
{
	struct call_sum got;

	for (uint64_t i = 1; i <= 100; i++) {
		struct call_sample other = sample_at(START + i * S, 300 * i);

		add(sample_at(START + i * S, 100 * i));
		other.number = 2;
		other.pid = 8;
		add(other);
	}
	assert_true(call_counts_has(&counts, CALL, 7));
	assert_true(call_counts_has(&counts, CALL, 8));
	assert_false(call_counts_has(&counts, CALL, 9));
	assert_rate(10, 90, 400, 1e-6);
	assert_true(sum(10, 90, &got));
	assert_true(got.observed == 400 && got.blocks == 200);
	assert_true(fabs(got.calls - 32000) < 1);
}

static void what_cannot_be_is_ignored(void **state)
{
	struct call_sample sample = sample_at(START + S, 10);
	struct call_sum got;

	sample.observed = 11;
	add(sample);
	sample = sample_at(START + S, 10);
	sample.since_ns = START + S + 1;
	add(sample);
	sample = sample_at(START + S, 10);
	sample.number = 0;
	add(sample);
	sample = sample_at(START + S, 10);
	sample.call_id = 0;
	add(sample);
	for (size_t i = 0; i < CALL_COUNTS_MAX; i++)
		assert_null(counts.of[i]);
	/* All at once, before the end of time. */
	for (size_t i = 0; i < 1000; i++)
		add((struct call_sample){1, 7, CALL, UINT64_MAX - 1000 + i, UINT64_MAX - 1000,
					 UINT64_MAX / 1000 * i, UINT64_MAX / 1000 * i, UINT64_MAX});
	assert_true(call_counts_sum(&counts, CALL, UINT64_MAX - 900, UINT64_MAX, &got));
	assert_true(isfinite(got.calls_per_s) && got.calls_per_s >= 0);
	assert_false(call_counts_sum(&counts, CALL, 0, UINT64_MAX, &got));
}

/* By the sample 60 +-15 blocks of 100 bytes a second. All calls allocate one block, which stays. */
static struct site_verdict sampled(void)
{
	return (struct site_verdict){
		.has_rate = true,
		.rate = {60, 15, 6000, 1800, 0, 100},
		.suspect_blocks = 40,
		.kept = 1,
		.dispersion = 1,
	};
}

static const struct call_sum all_of_76 = {76, 7600, 80, 80};
static const struct counted_part whole = {80, 80};

static void one_block_a_call(void **state)
{
	struct site_verdict verdict = sampled();
	double share;

	assert_true(counted_rate_improve(&verdict, &all_of_76, &whole));
	assert_true(fabs(verdict.rate.blocks_per_s - 76) < 1e-9);
	share = verdict.rate.blocks_error / 76;
	assert_true(fabs(share - sqrt(1.0 / (80 * 80) + 1.0 / (40 * 40) + 1.0 / 7600)) < 1e-9);
	assert_true(fabs(verdict.rate.bytes_per_s - 7600) < 1e-6);
	/* The sizes remain as uncertain. */
	assert_true(fabs(pow(verdict.rate.bytes_error / 7600, 2) - share * share -
			 (0.3 * 0.3 - 0.25 * 0.25)) < 1e-9);
	assert_true(verdict.rate.to_s >= 100);
}

static void a_part_of_what_calls_allocate(void **state)
{
	const struct call_sum calls = {100, 10000, 400, 200};
	const struct counted_part half = {90, 180};
	struct site_verdict verdict = sampled();

	verdict.kept = 0.8;
	verdict.suspect_blocks = 80;
	assert_true(counted_rate_improve(&verdict, &calls, &half));
	assert_true(fabs(verdict.rate.blocks_per_s - 100 * 0.5 * 0.5 * 0.8) < 1e-9);
	/* By the binomial distributions: 100 of 400 calls, and one more. */
	assert_true(fabs(pow(verdict.rate.blocks_error / verdict.rate.blocks_per_s, 2) -
			 (301.0 / (400 * 100) + 0.2 / 80 + 1e-4)) < 1e-9);
}

static void a_better_sample_stays(void **state)
{
	struct site_verdict verdict = sampled();

	verdict.rate.blocks_error = 1;
	assert_false(counted_rate_improve(&verdict, &all_of_76, &whole));
	verdict = sampled();
	verdict.dispersion = 100;
	assert_false(counted_rate_improve(&verdict, &all_of_76, &whole));
	assert_true(verdict.rate.blocks_per_s >= 60 && verdict.rate.blocks_per_s <= 60);
}

static void what_tells_nothing_changes_nothing(void **state)
{
	const struct call_sum none[] = {
		{76, 7600, 4, 80},
		{76, 7600, 80, 4},
		{76, 7600, 0, 0},
		{0, 0, 80, 80},
		{INFINITY, INFINITY, INFINITY, INFINITY},
		{NAN, NAN, NAN, NAN},
	};
	const struct counted_part parts[] = {{0, 80}, {80, 0}, {0, 0}, {81, 80}};
	struct site_verdict verdict = sampled();

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(counted_rate_improve(&verdict, &none[i], &whole));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_false(counted_rate_improve(&verdict, &all_of_76, &parts[i]));
	verdict.kept = -1;
	assert_false(counted_rate_improve(&verdict, &all_of_76, &whole));
	verdict = sampled();
	verdict.suspect_blocks = 0;
	assert_false(counted_rate_improve(&verdict, &all_of_76, &whole));
	verdict = sampled();
	verdict.rate.blocks_per_s = 0;
	assert_false(counted_rate_improve(&verdict, &all_of_76, &whole));
	verdict = sampled();
	verdict.rate.bytes_per_s = verdict.rate.bytes_error = 0;
	assert_true(counted_rate_improve(&verdict, &all_of_76, &whole));
	assert_true(verdict.rate.bytes_error <= 0);
}

#define TEST(function) cmocka_unit_test_teardown(function, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_history_stays_even),
		TEST(what_was_not_counted_is_not_known),
		TEST(counts_from_before_are_left_out),
		TEST(another_count_begins_anew),
		TEST(processes_add_up),
		TEST(what_cannot_be_is_ignored),
		TEST(one_block_a_call),
		TEST(a_part_of_what_calls_allocate),
		TEST(a_better_sample_stays),
		TEST(what_tells_nothing_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
