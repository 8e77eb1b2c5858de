/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes backpressure never stops, according to /proc. */
#include "recorder/processes/exempt.h"

#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void init_is_exempt(void **state)
{
	assert_string_equal(exempt_why(1, 0, NULL), "it is process 1");
}

static void a_service_is_not(void **state)
{
	bool is_stopped = false;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setsid();
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_null(exempt_why(pid, 0, &is_stopped));
	assert_null(exempt_why(pid, pid, NULL));
	assert_true(is_stopped);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	exempt_why(pid, 0, &is_stopped);
	assert_true(is_stopped);
}

static void who_is_debugged_is_exempt(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setsid();
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_string_equal(exempt_why(pid, 0, NULL), "a debugger has it");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A shell and its job, on a terminal of their own. */
static void jobs_are_exempt(void **state)
{
	pid_t shell, job = 0;
	int terminal, fds[2];

	assert_int_equal(pipe(fds), 0);
	shell = forkpty(&terminal, NULL, NULL, NULL);
	assert_true(shell >= 0);
	if (shell == 0) {
		job = fork();
		if (job == 0)
			for (;;)
				pause();
		setpgid(job, job);
		if (write(fds[1], &job, sizeof(job)) != sizeof(job))
			_exit(1);
		pause();
	}
	assert_int_equal(read(fds[0], &job, sizeof(job)), sizeof(job));
	assert_string_equal(exempt_why(job, 0, NULL), "its shell would take that for Ctrl-Z");
	assert_string_equal(exempt_why(job, shell, NULL), "it runs on leakrec's terminal");
	/* A shell that is not ours leads a session. */
	assert_null(exempt_why(shell, 0, NULL));
	assert_non_null(exempt_why(shell, shell, NULL));
	kill(job, SIGKILL);
	kill(shell, SIGKILL);
	waitpid(shell, NULL, 0);
	close(terminal);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_is_exempt),
		cmocka_unit_test(a_service_is_not),
		cmocka_unit_test(who_is_debugged_is_exempt),
		cmocka_unit_test(jobs_are_exempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
