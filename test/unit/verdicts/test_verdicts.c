// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs whose verdicts were wrong in earlier versions. */
#include "common/schema/reach_class.h"
#include "test/support/judged_program.h"

#include <stdlib.h>
#include <string.h>

static uint8_t reach[MAX];

/* Keys that a server keeps, and one value that it freed when the recording was about to end. */
static void one_long_life_hides_no_leak(void **state)
{
	for (size_t length = 0; length < 64; length++) {
		double length_s = 10 + (double)length * 0.2;

		if (length)
			begin(state);
		input.end_ns = START + (uint64_t)(length_s * (double)SECOND);
		add(1, 1, 64, 0.0001, length_s - 0.0011);
		for (size_t i = 0; i < 2000; i++)
			add(1, 1, 64, length_s * (double)i / 2000, FOREVER);
		assert_int_equal(verdicts_init(&verdicts, &input), 0);
		assert_int_equal(verdict_of(1)->verdict, VERDICT_GROWTH);
		if (length < 63)
			end(state);
	}
}

/* Process 1 lives throughout; the others live a second each, one after the other. */
static struct process_life life_of(const void *context, pid_t pid, uint64_t time_ns)
{
	uint64_t start_ns = START + (uint64_t)(pid - 100) * SECOND;

	return pid == 1 ? (struct process_life){0}
			: (struct process_life){.start_ns = start_ns,
						.end_ns = start_ns + 9 * SECOND / 10};
}

static void what_processes_left_behind_is_no_growth(void **state)
{
	input.process_life = life_of;
	for (pid_t i = 0; i < 100; i++)
		add(1, 100 + i, 1 << 20, i + 0.5, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_sites, 1);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_AT_EXIT);
}

static void what_others_left_behind_hides_no_growth(void **state)
{
	input.process_life = life_of;
	for (pid_t i = 0; i < 100; i++) {
		add(1, 1, 100, i + 0.2, FOREVER);
		add(1, 100 + i, 1 << 20, i + 0.5, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_sites, 2);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.sites[0].held_bytes, 100 * 100);
	assert_int_equal(verdicts.sites[1].verdict, VERDICT_AT_EXIT);
	assert_int_equal(verdicts.blocks_of[VERDICT_GROWTH], 100);
	assert_int_equal(verdicts.blocks_of[VERDICT_AT_EXIT], 100);
}

/* Process i begins in second 2i and lives for 20 seconds. */
static struct process_life life_of_worker(const void *context, pid_t pid, uint64_t time_ns)
{
	uint64_t start_ns = START + (uint64_t)(2 * pid) * SECOND;

	return (struct process_life){.start_ns = start_ns, .end_ns = start_ns + 20 * SECOND};
}

/* @loaded blocks of each worker at its start, and @later ones as long as it lives. */
static enum verdict of_workers(size_t loaded, size_t later)
{
	input.process_life = life_of_worker;
	for (pid_t second = 0; second < 100; second++)
		for (pid_t pid = 0; pid < 50; pid++) {
			pid_t age = second - 2 * pid;
			size_t nr = age == 0 ? loaded : age > 0 && age < 20 ? later : 0;

			for (size_t i = 0; i < nr; i++)
				add(1, pid, 1000,
				    second + 0.9 * ((double)i + 0.02 * pid) / (double)nr, FOREVER);
		}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	return verdicts.sites[0].verdict;
}

static void what_each_worker_loads_is_no_growth(void **state)
{
	assert_int_equal(of_workers(30, 0), VERDICT_STARTUP);
}

static void what_each_worker_leaks_is_growth(void **state)
{
	assert_int_equal(of_workers(30, 5), VERDICT_GROWTH);
	/* Ten workers live, and two count because they exited shortly before the end. */
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 55, 65);
}

/* Sixteen blocks come after a thousand that the other processes loaded. */
static void one_of_several_processes_leaks(void **state)
{
	for (size_t i = 0; i < 1000; i++)
		add(1, 2 + (pid_t)(i % 5), 1000, 1e-3 * (double)i, FOREVER);
	for (size_t i = 0; i < 16; i++)
		add(1, 1, 1000, 100.0 * ((double)i + 0.5) / 16, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_GROWTH);
}

/* A leak of a block per request; requests allocate and free until @until_s. */
static enum verdict of_leak(double until_s)
{
	for (size_t i = 0; i < 2000; i++) {
		double time_s = 100.0 * (double)i / 2000;

		if (time_s < 90)
			add(1, 1, 3072, time_s, FOREVER);
		if (time_s < until_s)
			add(2, 1, 100, time_s, 0.001);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	return verdict_of(1)->verdict;
}

static void a_leak_that_ends_with_the_work_has_not_stopped(void **state)
{
	assert_int_equal(of_leak(90), VERDICT_GROWTH);
}

static void a_leak_that_ends_before_the_work_has_stopped(void **state)
{
	assert_int_equal(of_leak(100), VERDICT_PLATEAU);
}

/* After the load, a client asks for statistics: a little work. */
static void a_little_work_after_the_load_stops_no_leak(void **state)
{
	for (size_t i = 0; i < 1800; i++) {
		add(1, 1, 3072, (double)i / 20, FOREVER);
		add(2, 1, 100, (double)i / 20, 0.001);
	}
	for (size_t i = 0; i < 8; i++)
		add(2, 1, 100, 98.5, 0.001);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_GROWTH);
}

static void a_slow_leak_goes_on_after_the_load(void **state)
{
	for (size_t i = 0; i < 9000; i++)
		add(2, 1, 100, (double)i / 100 + 0.01, 0.001);
	for (size_t i = 0; i < 50; i++)
		add(1, 1, 20, 2 * (double)i + 0.5, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_GROWTH);
}

static void much_of_a_plateau_comes_before_a_little_growth(void **state)
{
	for (size_t i = 0; i < 100; i++) {
		double time_s = (double)i + 0.1;

		add(2, 1, 100, time_s, 0.001);
		add(1, 1, 20, time_s, FOREVER);
		if (time_s > 20 && time_s < 60)
			add(3, 1, 256 << 10, time_s, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_PLATEAU);
	assert_int_equal(verdicts.sites[1].verdict, VERDICT_GROWTH);
}

/* --- causes --- */

/*
 * The functions of a stack: main, one of two functions, and a function of its own if the stack's
 * number is 100 or more.
 */
static int functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr)
{
	ret[0] = 1;
	ret[1] = stack_id % 2 ? 2 : 3;
	ret[2] = stack_id;
	*ret_nr = stack_id >= 100 ? 3 : 2;
	return 0;
}

static void stacks_that_come_together_are_one_cause(void **state)
{
	input.functions_of = functions_of;
	for (size_t i = 0; i < 200; i++) {
		double time_s = 100.0 * (double)(i * i) / (200 * 200);

		for (uint32_t k = 0; k < 4; k++)
			add(101 + 2 * k, 1, 100 << k, time_s + 0.00001 * k, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].nr, 4);
	assert_int_equal(verdicts.causes[0].verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.causes[0].verdict.held_bytes, 200 * 1500);
	/* The one with the most bytes comes first; main and its callee are common. */
	assert_int_equal(verdicts.sites[0].site->stack_id, 107);
	assert_int_equal(verdicts.sites[0].nr_shared, 2);
}

/*
 * A server without a pause: 5,000 requests in a quarter of a second, and 8 us from one allocation
 * to the next. Each request leaks at both places, or at one of them.
 */
static void serve_busily(bool at_both)
{
	uint32_t random = 1;

	input.functions_of = functions_of;
	input.end_ns = input.start_ns + SECOND / 4;
	for (size_t i = 0; i < 5000; i++) {
		random = random * 1664525 + 1013904223;
		for (uint32_t k = 0; k < 2; k++)
			if (at_both || (random >> 24 & 1) == k)
				add(101 + 2 * k, 1, 100, 0.00005 * (double)i + 0.000008 * k,
				    FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
}

static void parts_of_busy_requests_are_one_cause(void **state)
{
	serve_busily(true);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].nr, 2);
}

static void leaks_of_different_busy_requests_are_two_causes(void **state)
{
	serve_busily(false);
	assert_int_equal(verdicts.nr_causes, 2);
}

/* As those of another hash, whose order is another one. */
static int other_functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
			      size_t *ret_nr)
{
	functions_of(stacks, stack_id, ret, max, ret_nr);
	for (size_t i = 0; i < *ret_nr; i++)
		ret[i] = ~ret[i];
	return 0;
}

/*
 * Of three stacks with equal bytes the second comes with either of the others, but these do not
 * come together: which two are one cause must not depend on the hashes of functions.
 */
static void causes_do_not_depend_on_hashes(void **state)
{
	uint32_t first_with = 0;

	for (size_t i = 0; i < 104; i++)
		for (uint32_t k = 0; k < 3; k++)
			if (i < 100 + 2 * k)
				add(101 + 2 * k, 1, 132600 / (100 + 2 * k) - 1,
				    0.9 * (double)i + 0.001 * k, FOREVER);
	for (int turn = 0; turn < 2; turn++) {
		uint32_t with = 0;

		input.functions_of = turn ? other_functions_of : functions_of;
		assert_int_equal(verdicts_init(&verdicts, &input), 0);
		assert_int_equal(verdicts.nr_causes, 2);
		for (size_t i = 0; i < 3; i++)
			if (verdicts.causes[verdicts.sites[i].cause].nr == 2)
				with += verdicts.sites[i].site->stack_id;
		if (turn)
			assert_int_equal(with, first_with);
		else
			verdicts_deinit(&verdicts);
		first_with = with;
	}
}

static void leaks_of_their_own_times_are_two_causes(void **state)
{
	uint32_t random = 1;

	input.functions_of = functions_of;
	for (size_t i = 0; i < 2000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 24 < 40)
			add(101 + (random >> 20 & 1) * 2, 1, 100, 0.05 * (double)i, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 2);
	assert_int_equal(verdicts.sites[0].nr_shared, 0);
}

/*
 * One function leaks in each 97th step of a loop, the other in each 20th, nearly five times as
 * often.
 */
static void leaks_at_steady_rates_are_two_causes(void **state)
{
	input.functions_of = functions_of;
	for (uint32_t step = 1; step <= 2000; step++) {
		if (step % 97 == 0)
			add(101, 1, 1000, 0.05 * step, FOREVER);
		if (step % 20 == 0)
			add(103, 1, 100, 0.05 * step + 0.001, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 2);
}

/* Many stacks hold three blocks each, too few to judge a single stack. */
static void many_stacks_of_a_caller_are_one_cause(void **state)
{
	input.functions_of = functions_of;
	for (size_t i = 0; i < 900; i++) {
		add(2, 1, 100, (double)i / 9, 0.001);
		add(101 + 2 * ((uint32_t)i * 7 % 300), 1, 64, (double)i / 9, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].nr, 300);
	assert_int_equal(verdicts.causes[0].verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.sites[0].nr_shared, 2);
	assert_int_equal(verdicts.blocks_of[VERDICT_GROWTH], 900);
}

/*
 * The same, but blocks live for a tenth of the recording, and as many other stacks have freed
 * theirs.
 */
static void many_stacks_of_sessions_are_no_leak(void **state)
{
	input.functions_of = functions_of;
	for (size_t i = 0; i < 900; i++)
		add(101 + 2 * ((uint32_t)i * 7 % 300), 1, 64, (double)i / 9, 10);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	for (size_t i = 0; i < verdicts.nr_causes; i++)
		assert_true(verdicts.causes[i].verdict.verdict == VERDICT_NOT_YET ||
			    verdicts.causes[i].verdict.verdict == VERDICT_UNCLEAR);
}

/* --- generated code --- */

#define RUN  (GENERATED_FUNCTION | 1)
#define KEEP (GENERATED_FUNCTION | 2)
#define READ (GENERATED_FUNCTION | 3)

/* Stacks of main, generated functions, code of the runtime and malloc(). */
static const struct {
	uint64_t functions[6], places[6];
	size_t nr;
} generated[] = {
	[1] = {{1, RUN, KEEP, READ, 8, 9}, {10, 20, 30, 40, 80, 90}, 6},
	/* Compiled elsewhere; RUN calls KEEP from another place. */
	[2] = {{1, RUN, KEEP, READ, 8, 9}, {10, 21, 31, 41, 80, 90}, 6},
	/* READ is compiled into KEEP, which calls the runtime in another way. */
	[3] = {{1, RUN, KEEP, 7, 8, 9}, {10, 22, 32, 70, 80, 90}, 6},
	/* KEEP calls something else. */
	[4] = {{1, RUN, KEEP, 5, 6, 9}, {10, 22, 32, 50, 60, 90}, 6},
	/* The same functions, but not generated. */
	[5] = {{1, 2, 3, 4, 8, 9}, {10, 20, 30, 40, 80, 90}, 6},
	[6] = {{1, 2, 3, 4, 8, 9}, {10, 21, 31, 41, 80, 90}, 6},
};

static int generated_functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
				  size_t *ret_nr)
{
	*ret_nr = generated[stack_id].nr;
	memcpy(ret, generated[stack_id].functions, *ret_nr * sizeof(*ret));
	return 0;
}

static int generated_places_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
			       size_t *ret_nr)
{
	*ret_nr = generated[stack_id].nr;
	memcpy(ret, generated[stack_id].places, *ret_nr * sizeof(*ret));
	return 0;
}

/* One stack leaks in the first @first_s seconds, the other from @second_s on. */
static void judge_two(uint32_t first, double first_s, uint32_t second, double second_s)
{
	verdicts_deinit(&verdicts);
	site_stats_destroy((struct site_stats *)input.sites);
	assert_int_equal(begin(NULL), 0);
	input.functions_of = generated_functions_of;
	input.places_of = generated_places_of;
	for (int quarter = 0; quarter < 400; quarter++) {
		double time_s = quarter / 4.0;

		if (time_s < first_s)
			add(first, 1, 100, time_s, FOREVER);
		if (time_s >= second_s)
			add(second, 1, 100, time_s, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
}

static void check_one_cause(uint32_t first, double first_s, uint32_t second, double second_s)
{
	judge_two(first, first_s, second, second_s);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].nr, 2);
	assert_int_equal(verdicts.causes[0].verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.causes[0].verdict.suspect_blocks, input.nr_held);
	assert_int_equal(verdicts.blocks_of[VERDICT_GROWTH], input.nr_held);
}

static void check_two_causes(uint32_t first, double first_s, uint32_t second, double second_s)
{
	judge_two(first, first_s, second, second_s);
	assert_int_equal(verdicts.nr_causes, 2);
}

/* By itself, the first one is a plateau. */
static void versions_of_generated_code_are_one_cause(void **state)
{
	check_one_cause(1, 50, 2, 50);
	check_one_cause(1, 50, 3, 50);
	check_one_cause(3, 50, 2, 50);
	/* The same code in two places may run in turns. */
	check_one_cause(1, 60, 2, 40);
	/* main(), and the generated functions in all of them. */
	judge_two(1, 50, 3, 50);
	assert_int_equal(verdicts.sites[0].nr_shared, 3);
	assert_int_equal(verdicts.sites[1].nr_shared, 3);
}

static void other_code_is_another_cause(void **state)
{
	/* KEEP leaks by itself and by READ. */
	check_two_causes(1, 60, 3, 40);
	/* It takes over too late. */
	check_two_causes(1, 20, 3, 60);
	check_two_causes(1, 50, 4, 50);
	check_two_causes(5, 50, 6, 50);
}

/* --- what a scan has said --- */

static void say(uint32_t stack_id, enum reach_class said)
{
	for (size_t i = 0; i < input.nr_held; i++)
		if (held[i].allocated.stack_id == stack_id)
			reach[i] = (uint8_t)said;
	input.reach = reach;
}

static const struct cause *cause_of(uint32_t stack_id)
{
	return &verdicts.causes[verdict_of(stack_id)->cause];
}

/*
 * Four stacks come together: two lose their blocks, one of them most only, and the others keep
 * them. The last block of each is too young for the scan.
 */
static void what_is_lost_is_a_cause_of_its_own(void **state)
{
	input.functions_of = functions_of;
	for (size_t i = 0; i < 200; i++)
		for (uint32_t k = 0; k < 4; k++)
			add(101 + 2 * k, 1, 100 << k, 0.5 * (double)i + 0.00001 * k, FOREVER);
	say(101, REACH_LOST);
	say(103, REACH_THROUGH);
	say(105, REACH_HELD);
	say(107, REACH_POSSIBLE);
	reach[1] = REACH_HELD;
	for (uint32_t k = 1; k <= 4; k++)
		reach[input.nr_held - k] = REACH_NOT_SCANNED;
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 2);
	assert_ptr_equal(cause_of(101), cause_of(103));
	assert_ptr_equal(cause_of(105), cause_of(107));
	assert_ptr_not_equal(cause_of(101), cause_of(105));
	assert_int_equal(cause_of(101)->nr, 2);
	assert_int_equal(cause_of(101)->verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(cause_of(101)->verdict.held_bytes, 200 * 300);
	assert_int_equal(cause_of(105)->verdict.held_bytes, 200 * 1200);
	assert_ptr_equal(cause_of(105)->verdict.site, &cause_of(105)->sum);
}

/* Of stacks that say little by themselves, one has more blocks, which are lost. */
static void a_lost_stack_leaves_its_many_relatives(void **state)
{
	input.functions_of = functions_of;
	for (size_t i = 0; i < 900; i++) {
		double time_s = (double)i / 9;

		add(2, 1, 100, time_s, 0.001);
		add(101 + 2 * ((uint32_t)i * 7 % 300), 1, 64, time_s, FOREVER);
		if (i % 36 == 0)
			add(999, 1, 640, time_s, FOREVER);
	}
	memset(reach, REACH_HELD, sizeof(reach));
	say(999, REACH_LOST);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 2);
	assert_int_equal(cause_of(999)->nr, 1);
	assert_int_equal(cause_of(999)->verdict.held_blocks, 25);
	assert_int_equal(cause_of(999)->verdict.verdict, VERDICT_GROWTH);
	assert_true(cause_of(999)->verdict.has_rate);
	assert_ptr_equal(cause_of(999)->verdict.site, verdict_of(999)->site);
	assert_int_equal(cause_of(101)->nr, 300);
	assert_int_equal(cause_of(101)->verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdict_of(101)->nr_shared, 2);
}

/* Nothing is known of the others, or nothing is lost. */
static void what_may_be_lost_splits_no_cause(void **state)
{
	static const enum reach_class others[] = {REACH_UNKNOWN, REACH_WEAK, REACH_NOT_SCANNED,
						  REACH_CYCLE};

	input.functions_of = functions_of;
	for (size_t i = 0; i < 200; i++)
		for (uint32_t k = 0; k < 2; k++)
			add(101 + 2 * k, 1, 100, 0.5 * (double)i + 0.00001 * k, FOREVER);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		say(101, i % 2 ? REACH_HELD : REACH_LOST);
		say(103, others[i]);
		if (others[i] == REACH_CYCLE)
			say(101, REACH_LOST);
		assert_int_equal(verdicts_init(&verdicts, &input), 0);
		assert_int_equal(verdicts.nr_causes, 1);
		verdicts_deinit(&verdicts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_long_life_hides_no_leak),
		TEST(what_processes_left_behind_is_no_growth),
		TEST(what_others_left_behind_hides_no_growth),
		TEST(what_each_worker_loads_is_no_growth),
		TEST(what_each_worker_leaks_is_growth),
		TEST(one_of_several_processes_leaks),
		TEST(a_leak_that_ends_with_the_work_has_not_stopped),
		TEST(a_leak_that_ends_before_the_work_has_stopped),
		TEST(a_little_work_after_the_load_stops_no_leak),
		TEST(a_slow_leak_goes_on_after_the_load),
		TEST(much_of_a_plateau_comes_before_a_little_growth),
		TEST(stacks_that_come_together_are_one_cause),
		TEST(parts_of_busy_requests_are_one_cause),
		TEST(leaks_of_different_busy_requests_are_two_causes),
		TEST(causes_do_not_depend_on_hashes),
		TEST(leaks_of_their_own_times_are_two_causes),
		TEST(leaks_at_steady_rates_are_two_causes),
		TEST(many_stacks_of_a_caller_are_one_cause),
		TEST(many_stacks_of_sessions_are_no_leak),
		TEST(versions_of_generated_code_are_one_cause),
		TEST(other_code_is_another_cause),
		TEST(what_is_lost_is_a_cause_of_its_own),
		TEST(a_lost_stack_leaves_its_many_relatives),
		TEST(what_may_be_lost_splits_no_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
