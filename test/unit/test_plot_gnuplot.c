/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_quoted(const char *text, size_t max_chars, const char *expected)
{
	char *quoted = NULL;
	size_t size;
	FILE *out = open_memstream(&quoted, &size);

	assert_non_null(out);
	gnuplot_print_string(out, text, max_chars);
	fclose(out);
	assert_string_equal(quoted, expected);
	free(quoted);
}

static void strings_are_literal(void **state)
{
	assert_quoted("emacs", 10, "'emacs'");
	assert_quoted("", 10, "''");
	assert_quoted("it's", 10, "'it''s'");
	assert_quoted("`id`\"$(id)", 20, "'`id`\"$(id)'");
	assert_quoted("a\nb\033", 10, "'a\\x0ab\\x1b'");
	assert_quoted("\xff", 10, "'\\xff'");
}

static void strings_are_cut_between_characters(void **state)
{
	assert_quoted("abcdef", 3, "'abc...'");
	assert_quoted("abc", 3, "'abc'");
	assert_quoted("\u00e4\u00f6\u00fc", 2, "'\u00e4\u00f6...'");
	assert_quoted("'''", 2, "'''''...'");
}

/* What gnuplot makes of a string, as opposed to what we believe. */
static void gnuplot_takes_strings_literally(void **state)
{
	static const char hostile[] = "`echo x`'.system('echo y').'\"; print 1 #$(z)%s\\n@a";
	struct gnuplot gnuplot;
	char path[] = "/tmp/test_plot_gnuplot.XXXXXX", text[256] = "";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(gnuplot_start(&gnuplot, false), 0);
	fputs("set print '-'\nprint ", gnuplot.program);
	gnuplot_print_string(gnuplot.program, hostile, 1000);
	fputc('\n', gnuplot.program);
	assert_int_equal(gnuplot_finish(&gnuplot, fd), 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	/* The backslash is escaped as everywhere. */
	assert_string_equal(text, "`echo x`'.system('echo y').'\"; print 1 #$(z)%s\\x5cn@a\n");
}

static void failure_is_reported_and_writes_nothing(void **state)
{
	struct gnuplot gnuplot;
	char path[] = "/tmp/test_plot_gnuplot.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(gnuplot_start(&gnuplot, false), 0);
	fputs("set print '-'\nprint 'half a picture'\nset terminal nonsense\n", gnuplot.program);
	assert_true(gnuplot_finish(&gnuplot, fd) < 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	close(fd);
}

static void terminals_are_words(void **state)
{
	char *terminals;

	assert_int_equal(gnuplot_terminals(&terminals), 0);
	assert_non_null(strstr(terminals, " dumb "));
	assert_non_null(strstr(terminals, " svg "));
	free(terminals);
}

static void running_gnuplot_can_be_stopped(void **state)
{
	struct gnuplot gnuplot;

	assert_int_equal(gnuplot_start(&gnuplot, true), 0);
	fputs("pause 1000\n", gnuplot.program);
	fflush(gnuplot.program);
	gnuplot_stop(&gnuplot);
}

static void missing_gnuplot_is_an_error(void **state)
{
	struct gnuplot gnuplot;
	const char *old_path = getenv("PATH");
	char *path = strdup(old_path ? old_path : "");

	assert_non_null(path);
	setenv("PATH", "/nonexistent", 1);
	assert_true(gnuplot_start(&gnuplot, false) < 0);
	setenv("PATH", path, 1);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_literal),
		cmocka_unit_test(strings_are_cut_between_characters),
		cmocka_unit_test(gnuplot_takes_strings_literally),
		cmocka_unit_test(failure_is_reported_and_writes_nothing),
		cmocka_unit_test(terminals_are_words),
		cmocka_unit_test(running_gnuplot_can_be_stopped),
		cmocka_unit_test(missing_gnuplot_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
