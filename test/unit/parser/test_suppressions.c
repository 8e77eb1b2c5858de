// SPDX-License-Identifier: GPL-2.0-or-later
/* Suppressions are read and matched as by LeakSanitizer. */
#include "parser/verdicts/suppressions.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"foo", "foo", true},
		{"foo", "my_foobar", true},
		{"foo", "fo", false},
		{"^foo", "foobar", true},
		{"^foo", "my_foo", false},
		{"foo$", "my_foo", true},
		{"foo$", "foobar", false},
		{"^foo$", "foo", true},
		{"^foo$", "foo2", false},
		{"foo*bar", "a_foo_x_bar_b", true},
		{"foo*bar", "bar_foo", false},
		{"^*bar$", "foobar", true},
		{"foo*", "foo", true},
		{"foo*$", "foo and more", true},
		{"*", "x", true},
		{"*", "", false},
		{"foo", "", false},
		{"lib*.so", "/usr/lib/libX11.so.6", true},
		{"std::vector<*>::push_back", "void std::vector<int, A>::push_back(int&&)", true},
		{"foo$", "foofoo", false}, /* the first occurrence counts */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (suppression_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("\"%s\", \"%s\"", cases[i].pattern, cases[i].text);
	assert_false(suppression_matches("*", NULL));
}

static int read_text(struct suppressions *suppressions, const char *text)
{
	int fd = memfd_create("suppressions", MFD_CLOEXEC), err;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = suppressions_read(suppressions, path);
	close(fd);
	return err;
}

static void a_file(void **state)
{
	struct suppressions suppressions = {0};

	assert_int_equal(read_text(&suppressions, "# known\n\n  leak:foo  \r\nleak:^bar$"), 0);
	assert_int_equal(suppressions.nr, 2);
	assert_string_equal(suppressions.list[0].pattern, "foo");
	assert_int_equal(suppressions.list[0].line, 3);
	assert_ptr_equal(suppressions_find(&suppressions, "bar"), &suppressions.list[1]);
	assert_null(suppressions_find(&suppressions, "barn"));
	assert_null(suppressions_find(&suppressions, NULL));
	suppressions_deinit(&suppressions);
}

static void files_that_are_none(void **state)
{
	static const char *const texts[] = {"race:foo\n", "leak\n", "leak:\n", "foo\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct suppressions suppressions = {0};

		assert_int_equal(read_text(&suppressions, texts[i]), -EINVAL);
		suppressions_deinit(&suppressions);
	}
}

static void a_line_without_end(void **state)
{
	struct suppressions suppressions = {0};
	char *text = malloc(10001);

	assert_non_null(text);
	memset(text, 'x', 10000);
	text[10000] = '\0';
	assert_int_equal(read_text(&suppressions, text), -EINVAL);
	suppressions_deinit(&suppressions);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(a_file),
		cmocka_unit_test(files_that_are_none),
		cmocka_unit_test(a_line_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
