/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/gnuplot.h"

#include "common/diag.h"
#include "common/scope.h"
#include "plot/gnuplot/plot_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct plot_output dumb = {.kind = PLOT_OUTPUT_DUMB};

static void assert_quoted(const char *text, size_t max_chars, const char *expected)
{
	char *quoted = NULL;
	size_t size;
	FILE *out = open_memstream(&quoted, &size);

	assert_non_null(out);
	plot_output_print_string(&dumb, out, text, max_chars);
	fclose(out);
	assert_string_equal(quoted, expected);
	free(quoted);
}

static void strings_are_literal(void **state)
{
	assert_quoted("emacs", 10, "\"emacs\"");
	assert_quoted("", 10, "\"\"");
	assert_quoted("it's", 10, "\"it's\"");
	assert_quoted("`id`\"$(id)@a", 20, "\"\\140id\\140\\\"$(id)\\100a\"");
	assert_quoted("a\nb\033", 10, "\"a\\\\x0ab\\\\x1b\"");
	assert_quoted("\xff", 10, "\"\\\\xff\"");
}

static void strings_are_cut_between_characters(void **state)
{
	assert_quoted("abcdef", 3, "\"abc...\"");
	assert_quoted("abc", 3, "\"abc\"");
	assert_quoted("\u00e4\u00f6\u00fc", 2, "\"\u00e4\u00f6...\"");
	assert_quoted("'''", 2, "\"''...\"");
}

static const char *const hostile[] = {
	"'",
	"''",
	"'begins with one",
	"''begins with two",
	"a pair '' and three ''' and four ''''",
	"ends with one'",
	"\"",
	"\"\"",
	"a \" b \"\" c",
	"\\",
	"ends with \\",
	"\\\" \\' \\\\ \\n \\140",
	"`echo x`",
	"$(echo x) ${HOME} $1",
	"'.system('echo y').'",
	"\".system(\"echo y\").\"",
	"@macro @@ @",
	"{/Symbol a}_b^c &{d} ~a{.8-}",
	"%s %d %n %",
	"# ; ! | & < > [1:2] (3)",
	"line\nexit\nsystem 'echo z'",
	"END\nEND",
	"\xff\xc0\x80\xed\xa0\x80",
	"\u202e\u2066 turned",
	"\u00e4\u00f6\u00fc \u20ac \U0001f600",
	"",
	" ",
};

/* The texts as diag_print_escaped() writes them. */
static void assert_taken_literally(const char *const *texts, size_t nr)
{
	struct gnuplot gnuplot;
	char path[] = "/tmp/test_plot_gnuplot.XXXXXX";
	char *expected = NULL, *seen;
	size_t size;
	FILE *out = open_memstream(&expected, &size);
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_non_null(out);
	unlink(path);
	assert_int_equal(gnuplot_start(&gnuplot, GNUPLOT_OURS), 0);
	fputs("set print '-'\nmacro = 'expanded'\nset terminal unknown\n", gnuplot.program);
	for (size_t i = 0; i < nr; i++) {
		/* Commands with names, followed by text that must still be visible. */
		fputs("set title ", gnuplot.program);
		plot_output_print_string(&dumb, gnuplot.program, texts[i], 100000);
		fputs(" noenhanced\nplot x title ", gnuplot.program);
		plot_output_print_string(&dumb, gnuplot.program, texts[i], 100000);
		fputs(" with lines\nprint ", gnuplot.program);
		plot_output_print_string(&dumb, gnuplot.program, texts[i], 100000);
		fputs(".'|'\n", gnuplot.program);
		diag_print_escaped(out, texts[i], NULL);
		fputs("|\n", out);
	}
	fclose(out);
	assert_int_equal(gnuplot_finish(&gnuplot, fd), 0);
	seen = calloc(1, size + 2);
	assert_non_null(seen);
	assert_true(pread(fd, seen, size + 1, 0) > 0);
	assert_string_equal(seen, expected);
	close(fd);
	free(seen);
	free(expected);
}

/* How gnuplot itself reads a string. */
static void gnuplot_takes_strings_literally(void **state)
{
	assert_taken_literally(hostile, ARRAY_SIZE(hostile));
}

#define NR_RANDOM 300

static void gnuplot_takes_random_strings_literally(void **state)
{
	static const char bytes[] = "''''\"\"``\\\\$@{}()%#!;\n\t^_&~,.ab \xc3\xa4\xff";
	static char texts[NR_RANDOM][40], very_long[20001];
	const char *list[NR_RANDOM + 1];
	uint32_t random = 1;

	for (size_t i = 0; i < NR_RANDOM; i++) {
		for (size_t j = 0; j < 1 + i % (sizeof(texts[i]) - 1); j++) {
			random = random * 1664525 + 1013904223;
			texts[i][j] = bytes[(random >> 8) % (sizeof(bytes) - 1)];
		}
		list[i] = texts[i];
	}
	memset(very_long, '\'', sizeof(very_long) - 1);
	list[NR_RANDOM] = very_long;
	assert_taken_literally(list, ARRAY_SIZE(list));
}

static void failure_is_reported_and_writes_nothing(void **state)
{
	struct gnuplot gnuplot;
	char path[] = "/tmp/test_plot_gnuplot.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(gnuplot_start(&gnuplot, GNUPLOT_OURS), 0);
	/* Not an unknown terminal, which is only worth a warning to gnuplot 6. */
	fputs("set print '-'\nprint 'half a picture'\nnonsense\n", gnuplot.program);
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

	assert_int_equal(gnuplot_start(&gnuplot, GNUPLOT_OWN), 0);
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
	assert_true(gnuplot_start(&gnuplot, GNUPLOT_OURS) < 0);
	setenv("PATH", path, 1);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_literal),
		cmocka_unit_test(strings_are_cut_between_characters),
		cmocka_unit_test(gnuplot_takes_strings_literally),
		cmocka_unit_test(gnuplot_takes_random_strings_literally),
		cmocka_unit_test(failure_is_reported_and_writes_nothing),
		cmocka_unit_test(terminals_are_words),
		cmocka_unit_test(running_gnuplot_can_be_stopped),
		cmocka_unit_test(missing_gnuplot_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
