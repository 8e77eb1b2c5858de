/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a scanner may do, where a container permits only some capabilities. */
#include "recorder/session/privileges.h"

#include "common/sandbox/capabilities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What the child cannot tell by a failed assertion. */
enum result { GOOD, NOT_SET_UP, TOLD, TOO_FEW, TOO_MANY };

static bool has(capng_type_t which, unsigned int capability)
{
	return capng_have_capability(which, capability) == 1;
}

/* In a child: without CAP_SYS_NICE, drops what a scanner does not need. */
static enum result drop(bool no_new_privs)
{
	int told = memfd_create("told", MFD_CLOEXEC);

	if (capng_get_caps_process() < 0 ||
	    capng_update(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_NICE) < 0 ||
	    capng_apply(CAPNG_SELECT_CAPS) < 0 || dup2(told, STDERR_FILENO) < 0 ||
	    (no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
		return NOT_SET_UP;
	privileges_drop_for_scanner();
	if (lseek(told, 0, SEEK_END) != 0)
		return TOLD;
	if (capng_get_caps_process() < 0)
		return NOT_SET_UP;
	if (has(CAPNG_PERMITTED, CAP_SYS_PTRACE) != no_new_privs)
		return no_new_privs ? TOO_FEW : TOO_MANY;
	return has(CAPNG_EFFECTIVE, CAP_SYS_PTRACE) || has(CAPNG_PERMITTED, CAP_SYS_NICE) ||
			       has(CAPNG_PERMITTED, CAP_KILL)
		       ? TOO_MANY
		       : GOOD;
}

static void assert_drops(bool no_new_privs)
{
	int status;
	pid_t pid;

	if (geteuid() != 0 || capng_get_caps_process() < 0 || !has(CAPNG_PERMITTED, CAP_SYS_PTRACE))
		skip();
	pid = fork();
	if (pid == 0)
		_exit(drop(no_new_privs));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void test_a_scanner_permits_nothing(void **state)
{
	assert_drops(false);
}

static void test_under_no_new_privs_it_permits_what_there_is(void **state)
{
	assert_drops(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_scanner_permits_nothing),
		cmocka_unit_test(test_under_no_new_privs_it_permits_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
