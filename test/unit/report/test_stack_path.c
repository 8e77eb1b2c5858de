/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks on one line, and how rows of a list differ. */
#include "report/names/stack_path.h"

#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MAX_ROWS 4

/* Equal strings must be equal pointers, as those of a pool are: the compiler merges literals. */
#define LINE(function, source, at, offset)                                                         \
	{                                                                                          \
		.name = (function), .module = "/bin/app", .file = (source), .line = (at),          \
		.module_offset = (offset), .has_symbol = true                                      \
	}
#define SYMBOL(function) LINE(function, NULL, 0, 0)
#define ADDRESS(text)                                                                              \
	{                                                                                          \
		.name = (text), .module = "/usr/bin/git"                                           \
	}

#define STACK(...)                                                                                 \
	(const struct named_stack)                                                                 \
	{                                                                                          \
		.frames = (struct named_frame[]){__VA_ARGS__},                                     \
		.nr = ARRAY_SIZE(((struct named_frame[]){__VA_ARGS__})),                           \
	}

/* The frames of each stack from the second one on are the user's and its callers. */
static void assert_rows(const struct named_stack *stacks, size_t nr, size_t columns,
			const char *const *expected)
{
	struct stack_path_style style = stack_path_summary;
	struct stack_path paths[MAX_ROWS];
	char **texts;

	style.columns = columns;
	for (size_t i = 0; i < nr; i++)
		paths[i] = (struct stack_path){&stacks[i], stacks[i].nr > 1};
	assert_int_equal(stack_paths_texts(paths, nr, &style, &texts), 0);
	for (size_t i = 0; i < nr; i++)
		assert_string_equal(texts[i], expected[i]);
	stack_paths_free(texts, nr);
}

#define ROWS(columns, stacks, ...)                                                                 \
	assert_rows(stacks, ARRAY_SIZE(stacks), columns, (const char *const[]){__VA_ARGS__})

static void the_place_is_with_its_frame(void **state)
{
	const struct named_stack stacks[] = {
		STACK(SYMBOL("malloc"), LINE("query", "/src/daemon.c", 63, 1), SYMBOL("main")),
		STACK(SYMBOL("malloc"), SYMBOL("main"), SYMBOL("_start")),
		STACK(SYMBOL("malloc"), ADDRESS("git+0x12"), ADDRESS("git+0x34"), SYMBOL("main")),
		{.frames = NULL},
	};

	ROWS(96, stacks, "query (daemon.c:63) < main", "main (app) < _start",
	     "git+0x12 < git+0x34 < main", "(no stack)");
	ROWS(20, stacks, "query (daemon.c:63) ...", "main (app) < _start",
	     "git+0x12 < git+0x34 ...", "(no stack)");
}

static void rows_differ_by_functions(void **state)
{
	const struct named_stack stacks[] = {
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("b"), SYMBOL("load"), SYMBOL("main")),
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("b"), SYMBOL("save"), SYMBOL("main")),
	};
	/* Frames further inside: the callers of the allocator. */
	const struct named_stack inner[] = {
		{.frames = stacks[0].frames, .nr = 0},
		STACK(SYMBOL("std::map"), SYMBOL("a"), SYMBOL("b")),
		STACK(SYMBOL("std::set"), SYMBOL("a"), SYMBOL("b")),
	};
	const struct named_stack three[] = {
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("load"), SYMBOL("x"), SYMBOL("main")),
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("load"), SYMBOL("y"), SYMBOL("main")),
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("save"), SYMBOL("x"), SYMBOL("main")),
		STACK(SYMBOL("malloc"), SYMBOL("a")),
	};

	ROWS(12, stacks, "a (app) < b ... (via load)", "a (app) < b ... (via save)");
	ROWS(96, stacks, "a (app) < b < load < main", "a (app) < b < save < main");
	ROWS(96, inner, "(no stack)", "a (app) < b (via std::map)", "a (app) < b (via std::set)");
	ROWS(8, three, "a (app) ... (via load, x)", "a (app) ... (via load, y)",
	     "a (app) ... (via save)", "a (app)");
}

static void rows_differ_by_lines_and_addresses(void **state)
{
	const struct named_stack lines[] = {
		STACK(SYMBOL("malloc"), LINE("f", "f.c", 1, 1), LINE("main", "main.c", 7, 0x10)),
		STACK(SYMBOL("malloc"), LINE("f", "f.c", 1, 1), LINE("main", "main.c", 8, 0x20)),
		STACK(SYMBOL("malloc"), LINE("f", "f.c", 1, 1), LINE("main", "main.c", 8, 0x30)),
	};
	const struct named_stack addresses[] = {
		STACK(SYMBOL("malloc"), LINE("f", NULL, 0, 0x1), SYMBOL("main")),
		STACK(SYMBOL("malloc"), LINE("f", NULL, 0, 0x2), SYMBOL("main")),
		STACK(SYMBOL("malloc"), LINE("f", NULL, 0, 0x2), SYMBOL("main")),
	};

	ROWS(96, lines, "f (f.c:1) < main (main.c:7)", "f (f.c:1) < main (app+0x20)",
	     "f (f.c:1) < main (app+0x30)");
	ROWS(9, lines, "f (f.c:1) ... (via main (main.c:7))", "f (f.c:1) ... (via main (app+0x20))",
	     "f (f.c:1) ... (via main (app+0x30))");
	/* Stacks without any difference stay alike. */
	ROWS(96, addresses, "f (app+0x1) < main", "f (app+0x2) < main", "f (app+0x2) < main");
}

static void long_names_are_cut(void **state)
{
	char name[200];

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = i % 2 ? '\xa4' : '\xc3';
	name[sizeof(name) - 1] = '\0';
	const struct named_stack stacks[] = {
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL(name)),
		STACK(SYMBOL("malloc"), SYMBOL("a"), SYMBOL("b\nc")),
	};
	const struct stack_path_style narrow = {9, SIZE_MAX, true};
	struct stack_path paths[] = {{&stacks[0], 1}, {&stacks[1], 1}};
	char **texts;

	assert_int_equal(stack_paths_texts(paths, 2, &narrow, &texts), 0);
	assert_string_equal(texts[1], "a (app) ... (via b\\x0ac)");
	assert_in_range(strlen(texts[0]), 20, 120);
	stack_paths_free(texts, 2);
}

static void what_differs_comes_before_other_frames(void **state)
{
	const struct stack_path_style narrow = {24, 24, false};
	const struct named_stack stacks[] = {
		STACK(SYMBOL("malloc"), SYMBOL("add"), SYMBOL("resize"), SYMBOL("grow"),
		      SYMBOL("insert"), SYMBOL("load")),
		STACK(SYMBOL("malloc"), SYMBOL("add"), SYMBOL("resize"), SYMBOL("grow"),
		      SYMBOL("insert"), SYMBOL("save")),
		STACK(SYMBOL("malloc"), SYMBOL("get"), SYMBOL("resize"), SYMBOL("grow"),
		      SYMBOL("insert"), SYMBOL("save")),
	};
	struct stack_path paths[] = {{&stacks[0], 1}, {&stacks[1], 1}, {&stacks[2], 1}};
	char **texts;

	assert_int_equal(stack_paths_texts(paths, 3, &narrow, &texts), 0);
	assert_string_equal(texts[0], "add ... (via load)");
	assert_string_equal(texts[1], "add ... (via save)");
	assert_string_equal(texts[2], "get < resize < grow ...");
	stack_paths_free(texts, 3);
}

static void what_is_left_out_is_marked_in_full(void **state)
{
	const struct stack_path_style narrow = {22, 22, false};
	const struct named_stack stack = STACK(SYMBOL("malloc"), SYMBOL("get"), SYMBOL("resize"),
					       SYMBOL("grow"), SYMBOL("insert"));
	const struct stack_path path = {&stack, 1};
	char **texts;

	assert_int_equal(stack_paths_texts(&path, 1, &narrow, &texts), 0);
	assert_string_equal(texts[0], "get < resize ...");
	stack_paths_free(texts, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_place_is_with_its_frame),
		cmocka_unit_test(rows_differ_by_functions),
		cmocka_unit_test(rows_differ_by_lines_and_addresses),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(what_differs_comes_before_other_frames),
		cmocka_unit_test(what_is_left_out_is_marked_in_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
