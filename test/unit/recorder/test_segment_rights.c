/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that writes for another user takes that user's rights, or says that it cannot. */
#include "recorder/segments/segment_rights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <cap-ng.h>

#define OTHER 65534

/* Takes the rights of user @uid in a child, @with the capabilities that this needs. */
static int take(uid_t uid, bool with)
{
	const struct stat owner = {.st_uid = uid, .st_gid = uid};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (!with && (capng_get_caps_process() ||
			      capng_updatev(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
					    CAP_SETUID, CAP_SETGID, -1) ||
			      capng_apply(CAPNG_SELECT_CAPS)))
			_exit(99);
		status = segment_rights_take(&owner, "the test");
		if (status == 0 && ((uid_t)setfsuid(uid) != uid || (gid_t)setfsgid(uid) != uid))
			_exit(98);
		_exit(-status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_they_are_taken_or_missed(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(take(OTHER, true), 0);
	assert_int_equal(take(OTHER, false), EPERM);
	assert_int_equal(take(0, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_they_are_taken_or_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
