// SPDX-License-Identifier: GPL-2.0-or-later
/* Causes of code that distant callers share: one leak of that code, or a leak of each caller. */
#include "test/support/judged_program.h"

#define NR_CALLS   60
#define NR_CALLERS 3
#define NR_STEPS   1900
#define SHARED	   5 /* the function that allocates for all callers, in one or more ways */

/* Stack 1000 + 10 * caller + way: main, two functions of the caller, the shared one, the way. */
static int distant_functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
				size_t *ret_nr)
{
	uint32_t caller = stack_id / 10 % 10;

	ret[0] = 1;
	ret[1] = 10 + caller;
	ret[2] = 20 + caller;
	ret[3] = SHARED;
	ret[4] = 30 + stack_id % 10;
	*ret_nr = 5;
	return 0;
}

/* @caller calls the shared function, which allocates in @nr_ways. */
static void call_shared(uint32_t caller, uint32_t nr_ways, double time_s, double life_s)
{
	for (uint32_t way = 0; way < nr_ways; way++)
		add(1000 + 10 * caller + way, 1, 100 << way, time_s + 1e-6 * way, life_s);
}

/* Each request, at a time of its own, calls each caller in turn. That takes long. */
static void leak_for_each_request(uint32_t nr_ways, bool has_clean_caller)
{
	uint32_t random = 1;
	double time_s = 0;

	input.functions_of = distant_functions_of;
	for (size_t i = 0; i < NR_CALLS; i++) {
		random = random * 1664525 + 1013904223;
		time_s += 0.5 + 2.0 * random / (double)UINT32_MAX;
		if (has_clean_caller)
			call_shared(NR_CALLERS, nr_ways, time_s, 0.001);
		for (uint32_t caller = 0; caller < NR_CALLERS; caller++)
			call_shared(caller, nr_ways, time_s + 0.24 * caller, FOREVER);
	}
}

static void a_function_that_leaks_for_distant_callers_is_one_cause(void **state)
{
	leak_for_each_request(2, false);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].nr, 2 * NR_CALLERS);
	assert_int_equal(verdicts.causes[0].verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.causes[0].verdict.held_blocks, 2 * NR_CALLERS * NR_CALLS);
	/* Main, two functions of each caller, and the one that they share. */
	for (size_t i = 0; i < verdicts.nr_sites; i++)
		assert_int_equal(verdicts.sites[i].nr_shared, 4);
}

/* A helper with a single way to allocate, such as xstrdup(), says nothing about its callers. */
static void leaks_in_step_through_a_helper_are_causes_of_their_callers(void **state)
{
	leak_for_each_request(1, false);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, NR_CALLERS);
}

/* As often as each other, but at times of their own. */
static void independent_leaks_through_a_helper_are_causes_of_their_callers(void **state)
{
	uint32_t random = 1, nr_left[NR_CALLERS] = {NR_CALLS, NR_CALLS, NR_CALLS};

	input.functions_of = distant_functions_of;
	for (uint32_t step = 0; step < NR_STEPS; step++) {
		for (uint32_t caller = 0; caller < NR_CALLERS; caller++) {
			random = random * 1664525 + 1013904223;
			/* In this way NR_CALLS of the steps are drawn. */
			if ((random >> 8) % (NR_STEPS - step) >= nr_left[caller])
				continue;
			nr_left[caller]--;
			call_shared(caller, 2, 0.05 * step + 0.01 * caller, FOREVER);
		}
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, NR_CALLERS);
}

static void leak_by_the_clock(uint32_t nr_ways)
{
	input.functions_of = distant_functions_of;
	for (size_t i = 0; i < NR_CALLS; i++)
		for (uint32_t caller = 0; caller < NR_CALLERS; caller++)
			call_shared(caller, nr_ways, 1.5 * (double)i + 0.4 * caller, FOREVER);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
}

/* Timers of the same period always keep in step. */
static void timers_that_leak_through_a_helper_are_causes_of_their_callers(void **state)
{
	leak_by_the_clock(4);
	assert_int_equal(verdicts.nr_causes, NR_CALLERS);
}

static void a_function_with_many_ways_is_no_helper(void **state)
{
	leak_by_the_clock(5);
	assert_int_equal(verdicts.nr_causes, 1);
}

/* As most callers free what the function gave them, those that do not are to blame. */
static void a_function_whose_other_callers_free_is_no_cause(void **state)
{
	leak_for_each_request(2, true);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, NR_CALLERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_function_that_leaks_for_distant_callers_is_one_cause),
		TEST(leaks_in_step_through_a_helper_are_causes_of_their_callers),
		TEST(independent_leaks_through_a_helper_are_causes_of_their_callers),
		TEST(timers_that_leak_through_a_helper_are_causes_of_their_callers),
		TEST(a_function_with_many_ways_is_no_helper),
		TEST(a_function_whose_other_callers_free_is_no_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
