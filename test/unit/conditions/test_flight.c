/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the flight recorder does when conditions are met. */
#include "recorder/conditions/flight.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A child is ended by the signal, and the conditions are checked. */
static void end_child_by(int number)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	process_ends_add(&flight.ends, pid, false);
	kill(pid, number);
	process_ends_wait(&flight.ends, 60000);
	check();
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_the_first_end_is_the_reason(void **state)
{
	(void)state;
	want("signal");
	flight.write_ns = UINT64_MAX;
	end_child_by(SIGTERM);
	assert_string_equal(flight.waiting, "signal-15");
	end_child_by(SIGKILL);
	assert_string_equal(flight.waiting, "signal-15");
}

static void test_each_recording_has_its_reason(void **state)
{
	const struct segment_limits limits = {.bytes = SEGMENTS_MIN_BYTES, .in_memory = true};
	char dir[] = "/tmp/test_flight.XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(segments_create(dir, &limits, &flight.segments, &fd), 0);
	want("signal");
	end_child_by(SIGTERM);
	assert_true(segments_are_asked(flight.segments));
	assert_null(flight.waiting);
	end_child_by(SIGKILL);
	assert_string_equal(flight.asked_for, "signal-15");
	assert_string_equal(flight.waiting, "signal-9");
	segments_destroy(flight.segments);
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_says_that_it_does_not_see_all, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_the_first_end_is_the_reason, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_each_recording_has_its_reason, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
