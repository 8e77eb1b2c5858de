// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of generated code: the versions of a function have one name. */
#include "unwind/names/jit_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define PID 999999999 /* of no process */

static void versions_have_one_name(void **state)
{
	static const struct {
		const char *written, *name;
	} lines[] = {
		{"JS:~keep /a.js:3:20", "JS:keep /a.js:3:20"},
		{"JS:^keep /a.js:3:20", "JS:keep /a.js:3:20"},
		{"JS:+keep /a.js:3:20", "JS:keep /a.js:3:20"},
		{"JS:*keep /a.js:3:20", "JS:keep /a.js:3:20"},
		{"JS:keep /a.js:3:20", "JS:keep /a.js:3:20"},
		{"LazyCompile:* /a.js:4:13", "LazyCompile: /a.js:4:13"},
		{"JS:", "JS:"},
		{"Stub:*keep", "Stub:*keep"},
		{"void [app] A::Keep(int32)[QuickJitted]", "void [app] A::Keep(int32)"},
		{"void [app] A::Keep(int32)[OptimizedTier1]", "void [app] A::Keep(int32)"},
		{"void [app] A::Keep(int32[])", "void [app] A::Keep(int32[])"},
		{"operator[Optimized]x", "operator[Optimized]x"},
		{"Interpreter", "Interpreter"},
	};
	char folder[] = "/tmp/test_jit_names.XXXXXX", path[64];
	struct jit_names names;
	FILE *map;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tmp", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", folder, PID);
	map = fopen(path, "w");
	assert_non_null(map);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		fprintf(map, "%zx 10 %s\n", 0x1000 * (i + 1), lines[i].written);
	assert_int_equal(fclose(map), 0);

	assert_int_equal(jit_names_init(&names, PID, folder), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const struct jit_piece *piece = jit_names_find(&names, 0x1000 * (i + 1) + 8);

		assert_non_null(piece);
		assert_string_equal(piece->name, lines[i].name);
	}
	jit_names_deinit(&names);
	unlink(path);
	snprintf(path, sizeof(path), "%s/tmp", folder);
	rmdir(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(versions_have_one_name)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
