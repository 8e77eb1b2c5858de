/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scratch directory of a test, and commands that run in it. */
#ifndef LEAKTOOLS_TEST_SCRATCH_DIR_H
#define LEAKTOOLS_TEST_SCRATCH_DIR_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char *dir; /* its path */

/* Runs @argv, with its output in @output (NULL: as the test's own). */
static inline void run_command(const char *const *argv, const char *output)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		int fd = output ? open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : 1;

		if (fd < 0 || dup2(fd, 1) < 0 || chdir(dir))
			_exit(126);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define RUN(...) run_command((const char *const[]){__VA_ARGS__, NULL}, NULL)

/* The path of @name in the directory; valid for three more calls. */
static inline char *in_dir(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *result = path[next++ % 4];

	snprintf(result, sizeof(path[0]), "%s/%s", dir, name);
	return result;
}

static inline int scratch_dir_create(const char *name)
{
	char template[256];

	snprintf(template, sizeof(template), TEST_BUILD_DIR "/%s-XXXXXX", name);
	dir = mkdtemp(template) ? strdup(template) : NULL;
	return dir ? 0 : -1;
}

static inline void scratch_dir_remove(void)
{
	RUN("rm", "-rf", dir);
	free(dir);
}

/* The same as fixtures of a program's tests, which give the directory its name. */
static inline int scratch_dir_setup(void **state)
{
	return scratch_dir_create(program_invocation_short_name);
}

static inline int scratch_dir_teardown(void **state)
{
	scratch_dir_remove();
	return 0;
}

#endif
