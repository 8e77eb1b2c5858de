/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that have ended keep no others out; and the pauses. */
#include "recorder/output/memory_samples.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct memory_samples samples;
static pid_t pids[MEMORY_MAX_PROCESSES + 1];

static int set_up(void **state)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	samples = (struct memory_samples){0};
	for (size_t i = 0; i <= MEMORY_MAX_PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		while (!pids[i])
			pause();
	}
	return 0;
}

static void end(size_t i)
{
	kill(pids[i], SIGKILL);
	assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	pids[i] = 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i <= MEMORY_MAX_PROCESSES; i++)
		if (pids[i])
			end(i);
	memory_samples_deinit(&samples);
	return 0;
}

static bool is_sampled(pid_t pid)
{
	for (size_t i = 0; i < samples.nr; i++)
		if (samples.processes[i].pid == pid)
			return true;
	return false;
}

static void fill(void)
{
	for (size_t i = 0; i < MEMORY_MAX_PROCESSES; i++)
		memory_samples_add(&samples, pids[i]);
	assert_int_equal(samples.nr, MEMORY_MAX_PROCESSES);
	assert_false(samples.left_out);
}

static void test_the_ended_make_room(void **state)
{
	(void)state;
	fill();
	for (size_t i = 1; i < MEMORY_MAX_PROCESSES; i++)
		end(i);
	assert_true(memory_samples_fork(&samples, pids[MEMORY_MAX_PROCESSES], pids[0]));
	assert_int_equal(samples.nr, 2);
	assert_true(is_sampled(pids[0]));
	assert_true(is_sampled(pids[MEMORY_MAX_PROCESSES]));
	assert_false(samples.left_out);
}

static void test_the_living_leave_others_out(void **state)
{
	(void)state;
	fill();
	memory_samples_add(&samples, pids[MEMORY_MAX_PROCESSES]);
	assert_int_equal(samples.nr, MEMORY_MAX_PROCESSES);
	assert_false(is_sampled(pids[MEMORY_MAX_PROCESSES]));
	assert_true(samples.left_out);
}

static void assert_pause_s(uint32_t nr_turns, uint64_t age_s, uint64_t expected_s)
{
	samples.nr_turns = nr_turns;
	assert_int_equal(memory_samples_pause_ns(&samples, age_s * 1000000000),
			 expected_s * 1000000000);
}

static void test_pauses_grow_up_to_a_limit(void **state)
{
	const uint64_t day_s = 86400;

	(void)state;
	samples = (struct memory_samples){0};
	assert_pause_s(255, day_s, 1);
	assert_pause_s(256, day_s, 2);
	assert_pause_s(256 * 12, 36 * day_s, 4096);
	samples.longest_ns = UINT64_C(60000000000);
	assert_pause_s(255, day_s, 1);
	assert_pause_s(256 * 5, day_s, 32);
	assert_pause_s(256 * 6, day_s, 60);
	assert_pause_s(256 * 12, 36 * day_s, 60);
	assert_pause_s(UINT32_MAX, 36 * day_s, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_ended_make_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_living_leave_others_out, set_up,
						tear_down),
		cmocka_unit_test(test_pauses_grow_up_to_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
