/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Placing and removing probes goes before all else, and nothing else does. */
#include "recorder/processes/realtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the policy of a child that begins now. */
static int policy_of_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(sched_getscheduler(0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_children_of_that_time_go_first(void **state)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	struct realtime before = realtime_begin();

	/* Without the right to, everything stays as it is. */
	if (before.policy < 0) {
		assert_int_equal(policy_of_child(), sched_getscheduler(0));
		skip();
	}
	assert_int_equal(policy_of_child(), SCHED_RR);
	realtime_end(&before);
	assert_int_equal(sched_getscheduler(0), before.policy);
	assert_int_equal(policy_of_child(), before.policy);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_of_that_time_go_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
