/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether return probes could kill targets: those with seccomp filters, or with a shadow stack. */
#include "recorder/processes/return_syscall.h"
#include "recorder/processes/shadow_stack.h"

#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>

#include <cmocka.h>

static void releases_are_told_apart(void **state)
{
	static const struct {
		const char *release;
		enum return_syscall kind;
	} cases[] = {
		{"5.15.0-130-generic", RETURN_TRAPS},
		{"6.1.0-31-amd64", RETURN_TRAPS},
		{"6.10.14", RETURN_TRAPS},
		{"6.11.0-19-generic", RETURN_FILTERED},
		{"6.11.11", RETURN_FILTERED},
		{"6.12.0", RETURN_FILTERED},
		{"6.12.13-amd64", RETURN_FILTERED},
		{"6.12.14+deb13-amd64", RETURN_PASSES},
		{"6.12.100", RETURN_PASSES},
		{"6.12-rc3", RETURN_FILTERED},
		{"6.13.2-arch1-1", RETURN_FILTERED},
		{"6.13.3", RETURN_PASSES},
		{"6.14.0-15-generic", RETURN_PASSES},
		{"6.18.44-fc", RETURN_PASSES},
		{"7.0", RETURN_PASSES},
		{"", RETURN_FILTERED},
		{"linux", RETURN_FILTERED},
		{"6", RETURN_FILTERED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(return_syscall_of_release(cases[i].release), cases[i].kind);
	}
}

/* A trial may find that a distribution has corrected its kernel, but not that it has the error. */
static void the_running_kernel_is_not_worse_than_its_release(void **state)
{
	enum return_syscall found = return_syscall_find();
	struct utsname name;

	uname(&name);
	if (found != RETURN_TRAPS && return_syscall_of_release(name.release) == RETURN_PASSES)
		assert_int_equal(found, RETURN_PASSES);
	if (return_syscall_of_release(name.release) == RETURN_TRAPS)
		assert_int_equal(found, RETURN_TRAPS);
}

/* A child that has entered that mode of seccomp, and waits. */
static pid_t child_in_mode(unsigned long mode)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &allow};
	int ready[2], hold[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready) | pipe(hold), 0);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (mode && prctl(PR_SET_SECCOMP, mode, &filter))
			_exit(1);
		if (write(ready[1], "", 1) == 1 && read(hold[0], &byte, 1) <= 0)
			syscall(SYS_exit, 0);
		_exit(1);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void threads_show_their_mode(void **state)
{
	static const unsigned long modes[] = {SECCOMP_MODE_DISABLED, SECCOMP_MODE_STRICT,
					      SECCOMP_MODE_FILTER};

	for (size_t i = 0; i < 3; i++) {
		pid_t pid = child_in_mode(modes[i]);

		assert_false(return_syscall_kills(RETURN_TRAPS, pid));
		assert_int_equal(return_syscall_kills(RETURN_PASSES, pid),
				 modes[i] == SECCOMP_MODE_STRICT);
		assert_int_equal(return_syscall_kills(RETURN_FILTERED, pid),
				 modes[i] != SECCOMP_MODE_DISABLED);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void shadow_stacks_are_seen(void **state)
{
	assert_true(shadow_stack_is_in("Threads:\t1\nx86_Thread_features:\tshstk wrss \n"
				       "x86_Thread_features_locked:\t\n"));
	assert_false(shadow_stack_is_in("x86_Thread_features:\t\n"
					"x86_Thread_features_locked:\tshstk wrss \n"));
	assert_false(shadow_stack_is_in("Name:\tshstk\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_are_told_apart),
		cmocka_unit_test(the_running_kernel_is_not_worse_than_its_release),
		cmocka_unit_test(threads_show_their_mode),
		cmocka_unit_test(shadow_stacks_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
