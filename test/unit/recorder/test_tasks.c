/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stopping processes while events are opened, for at most a second. */
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"
#include "recorder/processes/tasks.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static char state_of(pid_t pid)
{
	struct process_stat status;

	assert_int_equal(process_stat_read(pid, &status), 0);
	return status.state;
}

static void held_until_released(void **state)
{
	pid_t pid = start_child();
	struct task_hold hold;

	assert_int_equal(task_hold_all(&hold, &pid, 1), 0);
	assert_int_equal(state_of(pid), 't');
	assert_int_equal(process_status_tracer(pid), hold.pid);
	task_hold_release(&hold);
	assert_int_equal(process_status_tracer(pid), 0);
	assert_int_not_equal(state_of(pid), 't');
	end_child(pid);
}

/* As if the recorder had been stopped meanwhile. */
static void held_no_longer_than_a_second(void **state)
{
	pid_t pid = start_child();
	struct task_hold hold;

	assert_int_equal(task_hold_all(&hold, &pid, 1), 0);
	for (int i = 0; i < 100 && process_status_tracer(pid) > 0; i++)
		usleep(50000);
	assert_int_equal(process_status_tracer(pid), 0);
	assert_int_not_equal(state_of(pid), 't');
	task_hold_release(&hold);
	end_child(pid);
}

static void a_signal_ends_the_wait(void **state)
{
	pid_t pid = start_child();
	struct task_hold hold;
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGINT);
	assert_int_equal(task_hold_all(&hold, &pid, 1), -EINTR);
	task_hold_release(&hold);
	assert_int_equal(process_status_tracer(pid), 0);
	sigwait(&set, &number);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_until_released),
		cmocka_unit_test(held_no_longer_than_a_second),
		cmocka_unit_test(a_signal_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
