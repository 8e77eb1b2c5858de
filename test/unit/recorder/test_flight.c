/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the flight recorder does when conditions are met. */
#include "recorder/conditions/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct flight flight;
static struct memory_samples memory;

static int set_up(void **state)
{
	memory = (struct memory_samples){0};
	flight = (struct flight){
		.memory = &memory,
		.signal_fd = -1,
		.sources = {.pressure_fd = -1, .events_fd = -1},
	};
	return 0;
}

static int tear_down(void **state)
{
	flight_deinit(&flight);
	return 0;
}

static void want(const char *condition)
{
	assert_int_equal(condition_parse(condition, &flight.conditions[flight.nr_conditions]), 0);
	flight.nr_conditions++;
}

/* Has the conditions checked now. */
static void check(void)
{
	flight.check_ns = 0;
	assert_int_equal(flight_serve(&flight, NULL), 0);
}

static void test_says_that_it_does_not_see_all(void **state)
{
	(void)state;
	want("end");
	memory.left_out = true;
	check();
	assert_false(flight.told_left_out);
	want("signal");
	check();
	assert_true(flight.told_left_out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_says_that_it_does_not_see_all, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
