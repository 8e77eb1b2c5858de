/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options from files: what lines mean, and which files are refused. */
#include "common/service/options_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static char dir[] = "/tmp/leaktools-test-XXXXXX";
static int dir_fd;

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	dir_fd = options_file_open_dir(dir);
	return dir_fd < 0;
}

static int remove_dir(void **state)
{
	unlinkat(dir_fd, "x.conf", 0);
	unlinkat(dir_fd, "other", 0);
	close(dir_fd);
	return rmdir(dir);
}

static void write_bytes(const char *bytes, size_t size)
{
	int fd;

	unlinkat(dir_fd, "x.conf", 0);
	fd = openat(dir_fd, "x.conf", O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static int read_words(struct option_words *words)
{
	return options_file_read(dir_fd, dir, "x.conf", "nginx", words);
}

/* @expected: words that end with NULL. */
static void assert_words(const char *text, const char *const *expected)
{
	struct option_words words = {0};
	size_t nr = 0;

	write_bytes(text, strlen(text));
	assert_int_equal(read_words(&words), 0);
	while (expected[nr])
		nr++;
	assert_int_equal(words.nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_string_equal(words.words[i], expected[i]);
	option_words_deinit(&words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_lines_mean(void **state)
{
	assert_words("budget 2%\n", WORDS("--budget=2%"));
	assert_words("\t budget\t= 2% \t\r\n\n# no\n  # no\nscan", WORDS("--budget=2%", "--scan"));
	assert_words("live=/var/lib/leakrec/%i\n", WORDS("--live=/var/lib/leakrec/nginx"));
	assert_words("on-leak mail -s 'a%i;$(b)' root # c\n",
		     WORDS("--on-leak=mail -s 'anginx;$(b)' root # c"));
	assert_words("live %%i%\n", WORDS("--live=%nginx%"));
	assert_words("scan\nbudget 2%\nbudget-x 1\nscan\nunset budget\nunset scan\n",
		     WORDS("--budget-x=1"));
	assert_words("unset budget\n", (const char *const[]){NULL});
	assert_words("", (const char *const[]){NULL});
}

static void lines_that_are_no_options(void **state)
{
	static const char *const texts[] = {
		"-p 1", "--scan", "BUDGET 2%", "budget: 2%", "= 3", "unset", "scan\nx\x01y 1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct option_words words = {0};

		write_bytes(texts[i], strlen(texts[i]));
		assert_int_equal(read_words(&words), -EINVAL);
		option_words_deinit(&words);
	}
}

static void assert_refused(int err)
{
	struct option_words words = {0};

	assert_int_equal(read_words(&words), err);
	assert_int_equal(words.nr, 0);
	option_words_deinit(&words);
}

static void files_that_are_refused(void **state)
{
	static char big[OPTIONS_FILE_MAX_BYTES + 1];

	write_bytes("scan\n", 5);
	assert_int_equal(fchmodat(dir_fd, "x.conf", 0664, 0), 0);
	assert_refused(-EPERM);
	assert_int_equal(fchmodat(dir_fd, "x.conf", 0646, 0), 0);
	assert_refused(-EPERM);
	assert_int_equal(fchmodat(dir_fd, "x.conf", 0600, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(dir_fd, "x.conf", 65534, 65534, 0), 0);
		assert_refused(-EPERM);
	}
	write_bytes("scan\0\n", 6);
	assert_refused(-EPERM);
	memset(big, '\n', sizeof(big));
	write_bytes(big, sizeof(big) - 1);
	assert_int_equal(read_words(&(struct option_words){0}), 0);
	write_bytes(big, sizeof(big));
	assert_refused(-EPERM);
	assert_int_equal(renameat(dir_fd, "x.conf", dir_fd, "other"), 0);
	assert_refused(-ENOENT);
	assert_int_equal(symlinkat("other", dir_fd, "x.conf"), 0);
	assert_refused(-ELOOP);
	unlinkat(dir_fd, "x.conf", 0);
	/* Nobody writes to it: it must not be waited for. */
	assert_int_equal(mkfifoat(dir_fd, "x.conf", 0600), 0);
	assert_refused(-EPERM);
}

static void directories_that_are_refused(void **state)
{
	assert_int_equal(options_file_open_dir("/proc/self/nothing"), -ENOENT);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(options_file_open_dir(dir), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lines_mean),
		cmocka_unit_test(lines_that_are_no_options),
		cmocka_unit_test(files_that_are_refused),
		cmocka_unit_test(directories_that_are_refused),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
