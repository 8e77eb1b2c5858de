/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Escaped text cannot control a terminal, nor make one line look like another. Advice fits the
 * error.
 */
#include "common/diag.h"
#include "common/json/json_text.h"
#include "common/scope.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_escaped(const char *text, const char *also, const char *expected)
{
	char *escaped = NULL;
	size_t size;
	FILE *out = open_memstream(&escaped, &size);

	assert_non_null(out);
	assert_int_equal(diag_print_escaped(out, text, also), 0);
	fclose(out);
	assert_string_equal(escaped, expected);
	free(escaped);
}

static void assert_json(const char *text, const char *expected)
{
	char *json = NULL;
	size_t size;
	FILE *out = open_memstream(&json, &size);

	assert_non_null(out);
	json_write_string(out, text);
	fclose(out);
	assert_string_equal(json, expected);
	free(json);
}

static void what_is_readable_stays(void **state)
{
	static const char *const texts[] = {
		"malloc",     "caf\u00e9", "\u65e5\u672c", "\u05d0\u05d1", "\u0645", "\u20ac",
		"\U0001f600", "\u00a0",	   "\u2010\u2027", "\u202f\u205f", "\ufefe", "\U000e0100",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_escaped(texts[i], NULL, texts[i]);
}

static void what_drives_a_terminal_is_escaped(void **state)
{
	assert_escaped("a\033[2Jb\r\n", NULL, "a\\x1b[2Jb\\x0d\\x0a");
	assert_escaped("\x7f\xc2\x9b", NULL, "\\x7f\\xc2\\x9b");
	assert_escaped("\xff\xc0\x80\xed\xa0\x80", NULL, "\\xff\\xc0\\x80\\xed\\xa0\\x80");
	assert_escaped("a\\b c", " ", "a\\x5cb\\x20c");
}

static void what_was_escaped_comes_back(void **state)
{
	char text[] = "a\\x1b[2J\\x0a\\xC3\\xa4\\x5cx41", unfinished[] = "\\x00\\x4g\\x4";

	diag_unescape(text);
	assert_string_equal(text, "a\033[2J\n\u00e4\\x41");
	diag_unescape(unfinished);
	assert_string_equal(unfinished, "\\x00\\x4g\\x4");
}

/* Both ends of each range. The characters next to them are printed, or not assigned. */
static void what_is_invisible_is_escaped(void **state)
{
	assert_escaped("\xc2\xad", NULL, "\\xc2\\xad");
	assert_escaped("\u061c", NULL, "\\xd8\\x9c");
	assert_escaped("\u200b\u200f", NULL, "\\xe2\\x80\\x8b\\xe2\\x80\\x8f");
	assert_escaped("free\u202eeerf", NULL, "free\\xe2\\x80\\xaeeerf");
	assert_escaped("\u2028\u2029", NULL, "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
	assert_escaped("\u2066\u2069", NULL, "\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
	assert_escaped("\ufeff", NULL, "\\xef\\xbb\\xbf");
	assert_escaped("\ufffe\uffff\ufffd", NULL, "\\xef\\xbf\\xbe\\xef\\xbf\\xbf\ufffd");
	assert_escaped("\ufff9", NULL, "\\xef\\xbf\\xb9");
	assert_escaped("\U000e0041\U000e007f", NULL, "\\xf3\\xa0\\x81\\x81\\xf3\\xa0\\x81\\xbf");
	assert_escaped("\U0001d173", NULL, "\\xf0\\x9d\\x85\\xb3");
}

static void json_has_no_invisible_characters_either(void **state)
{
	assert_json("caf\u00e9", "\"caf\u00e9\"");
	assert_json("a\u202eb\u2028", "\"a\\u202eb\\u2028\"");
	assert_json("\U000e0041", "\"\\udb40\\udc41\"");
}

static void assert_readable(const char *text, const char *expected)
{
	char *json = NULL;
	size_t size;
	FILE *out = open_memstream(&json, &size);

	assert_non_null(out);
	json_write_readable(out, text);
	fclose(out);
	assert_string_equal(json, expected);
	free(json);
}

/* As diag_print_escaped() writes it; a backslash is two in JSON. */
static void json_for_people_shows_what_is_invisible(void **state)
{
	assert_readable("caf\u00e9 \u05d0 \"<", "\"caf\u00e9 \u05d0 \\\"\\u003c\"");
	assert_readable("free\u202eeerf\u2028",
			"\"free\\\\xe2\\\\x80\\\\xaeeerf\\\\xe2\\\\x80\\\\xa8\"");
	assert_readable("a\\b\n\033\xff\xc2\x9b",
			"\"a\\\\x5cb\\\\x0a\\\\x1b\\\\xff\\\\xc2\\\\x9b\"");
	assert_readable("\xe2\x80", "\"\\\\xe2\\\\x80\"");
	assert_readable(NULL, "null");
}

/* Makes @modes the kernel's lockdown modes, for this process. */
static void set_lockdown(const char *modes)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/kernel/security/lockdown", "we");

	assert_non_null(file);
	assert_true(fputs(modes, file) >= 0);
}

static void the_advice_depends_on_lockdown(void **state)
{
	if (geteuid() || unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys/kernel/security", "tmpfs", 0, NULL))
		skip();
	assert_string_equal(diag_lockdown_hint(), "");
	assert_non_null(strstr(diag_rights_hint(-EPERM), "as in containers"));
	set_lockdown("none [integrity] confidentiality\n");
	assert_non_null(strstr(diag_rights_hint(-EPERM), "as in containers"));
	set_lockdown("none integrity [confidentiality]\n");
	assert_non_null(strstr(diag_rights_hint(EPERM), "; the kernel is locked down"));
	assert_non_null(strstr(diag_rights_hint(EACCES), "as in containers"));
	assert_string_equal(diag_rights_hint(ENOENT), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_readable_stays),
		cmocka_unit_test(what_drives_a_terminal_is_escaped),
		cmocka_unit_test(what_was_escaped_comes_back),
		cmocka_unit_test(what_is_invisible_is_escaped),
		cmocka_unit_test(json_has_no_invisible_characters_either),
		cmocka_unit_test(json_for_people_shows_what_is_invisible),
		cmocka_unit_test(the_advice_depends_on_lockdown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
