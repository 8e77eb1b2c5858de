/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which frame reports name a stack after. */
#include "report/names/named_stack.h"

#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const char libc[] = "/lib/libc.so.6", server[] = "/bin/server";

#define SYMBOL(in, function)                                                                       \
	{                                                                                          \
		.name = (function), .module = (in), .has_symbol = true                             \
	}
#define INLINED(in, function)                                                                      \
	{                                                                                          \
		.name = (function), .module = (in), .has_symbol = true, .inlined = true            \
	}
#define ADDRESS(in, text)                                                                          \
	{                                                                                          \
		.name = (text), .module = (in)                                                     \
	}

#define FIND_OF(function, ...)                                                                     \
	({                                                                                         \
		struct named_frame frames[] = {__VA_ARGS__};                                       \
		const struct named_stack stack = {.frames = frames, .nr = ARRAY_SIZE(frames)};     \
                                                                                                   \
		named_stack_user_frame(&stack, function);                                          \
	})

#define FIND(...) FIND_OF("malloc", __VA_ARGS__)

static void wrappers_are_skipped(void **state)
{
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "f")), 1);
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "xmalloc"),
			      SYMBOL(server, "f"), SYMBOL(server, "main")),
			 2);
	/* Interpreters' calls are no wrappers. */
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "_PyObject_New"),
			      SYMBOL(server, "_PyObject_MakeTpCall"), SYMBOL(server, "main")),
			 2);
	/* Functions of the C library other than wrappers say what the memory is for. */
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(libc, "fopen"), SYMBOL(server, "f")),
			 1);
	/* A program's own functions may have any name. */
	assert_int_equal(FIND(SYMBOL(server, "f"), SYMBOL(server, "g")), 1);
}

static void the_library_of_rust_is_skipped(void **state)
{
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "__rdl_alloc"),
			      SYMBOL(server, "<alloc::alloc::Global>::alloc_impl_runtime"),
			      SYMBOL(server, "core::iter::traits::iterator::Iterator::collect"),
			      SYMBOL(server, "app::load"), SYMBOL(server, "core::run")),
			 4);
	/* A C++ program may have a namespace of that name. */
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(libc, "operator new"),
			      SYMBOL(server, "core::Table::grow"), SYMBOL(server, "main")),
			 2);
}

static void what_follows_a_goroutines_end_is_skipped(void **state)
{
	/* By frame pointers. */
	assert_int_equal(
		FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "_cgo_26f4_Cfunc__Cmalloc"),
		     SYMBOL(server, "runtime.asmcgocall.abi0"), SYMBOL(server, "runtime.cgocall"),
		     SYMBOL(server, "main._Cfunc__CMalloc"), SYMBOL(server, "main.handle")),
		5);
	/* By call frame information. */
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "_cgo_26f4_Cfunc__Cmalloc"),
			      SYMBOL(server, "runtime.asmcgocall.abi0"),
			      ADDRESS(NULL, "0xc000026000"), SYMBOL(server, "runtime.park_m"),
			      ADDRESS(NULL, "(incomplete)")),
			 1);
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "xmalloc"),
			      ADDRESS(NULL, "(truncated: the dump was too short)")),
			 1);
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(server, "(anonymous namespace)::f")),
			 1);
}

static void a_stripped_allocator_is_skipped(void **state)
{
	assert_int_equal(FIND(ADDRESS(libc, "libc.so.6+0x800"), ADDRESS(libc, "libc.so.6+0x1010"),
			      ADDRESS(server, "server+0x2020")),
			 2);
	/* Generated code has neither a symbol nor a module. */
	assert_int_equal(
		FIND(SYMBOL(libc, "malloc"), ADDRESS(NULL, "0x7f0012345678"), SYMBOL(server, "f")),
		1);
}

static void inlined_functions_belong_to_their_frame(void **state)
{
	assert_int_equal(FIND(INLINED(libc, "checked"), SYMBOL(libc, "malloc"),
			      INLINED(server, "f"), SYMBOL(server, "main")),
			 2);
}

static void pools_are_the_users_own(void **state)
{
	assert_int_equal(FIND_OF("leak_alloc", SYMBOL(server, "pool_get"), SYMBOL(server, "f")), 0);
	assert_int_equal(FIND_OF(NULL, SYMBOL(server, "pool_get"), SYMBOL(server, "f")), 1);
}

static void without_a_user(void **state)
{
	const struct named_stack empty = {0};

	assert_int_equal(named_stack_user_frame(&empty, NULL), 0);
	assert_int_equal(FIND(SYMBOL(libc, "malloc")), 0);
	assert_int_equal(FIND(SYMBOL(libc, "malloc"), SYMBOL(libc, "strdup")), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrappers_are_skipped),
		cmocka_unit_test(the_library_of_rust_is_skipped),
		cmocka_unit_test(what_follows_a_goroutines_end_is_skipped),
		cmocka_unit_test(a_stripped_allocator_is_skipped),
		cmocka_unit_test(inlined_functions_belong_to_their_frame),
		cmocka_unit_test(pools_are_the_users_own),
		cmocka_unit_test(without_a_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
