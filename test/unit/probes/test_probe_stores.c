/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store finder, on libcs' code and on code without stores (test_probe_stores.S). */
#include "probes/x86/store_finder.h"

#include "test/support/code_cases.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_STORES 8

static int find_stores(const struct code_case *code, struct store_site ret[MAX_STORES])
{
	return store_finder_find(code->code, code_case_size(code), ret, MAX_STORES);
}

static void glibc_stores_through_rbp(void **state)
{
	const struct code_case *code = code_case_find("glibc_posix_memalign");
	struct store_site sites[MAX_STORES];

	assert_int_equal(code_case_size(code), 119);
	assert_int_equal(find_stores(code, sites), 1);
	assert_int_equal(sites[0].offset, 0x4c);
	assert_string_equal(sites[0].base_register, "bp");
	assert_string_equal(sites[0].value_register, "dx");
}

static void musl_stores_through_rbx(void **state)
{
	const struct code_case *code = code_case_find("musl_posix_memalign");
	struct store_site sites[MAX_STORES];

	assert_int_equal(find_stores(code, sites), 1);
	assert_int_equal(sites[0].offset, 5);
	assert_string_equal(sites[0].base_register, "bx");
	assert_string_equal(sites[0].value_register, "ax");
}

static void high_registers_have_their_names(void **state)
{
	const struct code_case *code = code_case_find("high_registers");
	struct store_site sites[MAX_STORES];

	assert_int_equal(find_stores(code, sites), 2);
	assert_string_equal(sites[0].base_register, "r15");
	assert_string_equal(sites[0].value_register, "r12");
	assert_int_equal(sites[1].offset, 3);
	assert_string_equal(sites[1].base_register, "r13");
	assert_string_equal(sites[1].value_register, "r8");
	assert_int_equal(store_finder_find(code->code, code_case_size(code), sites, 1), 1);
}

static void other_moves_are_no_stores(void **state)
{
	const struct code_case *code = code_case_find("other_moves");
	struct store_site sites[MAX_STORES];

	assert_int_equal(find_stores(code, sites), 0);
}

static void data_after_a_jump_is_not_code(void **state)
{
	const struct code_case *code = code_case_find("data_after_a_jump");
	struct store_site sites[MAX_STORES];

	assert_int_equal(find_stores(code, sites), 0);
}

static void loops_and_stray_jumps_end(void **state)
{
	const struct code_case *self = code_case_find("jump_to_itself");
	const struct code_case *out = code_case_find("jumps_out");
	struct store_site sites[MAX_STORES];

	assert_int_equal(find_stores(self, sites), 0);
	assert_int_equal(find_stores(out, sites), 0);
	assert_int_equal(store_finder_find(self->code, 0, sites, MAX_STORES), 0);
	assert_int_equal(
		store_finder_find(self->code, STORE_FINDER_MAX_CODE_BYTES + 1, sites, MAX_STORES),
		-E2BIG);
}

static void random_bytes_are_survived(void **state)
{
	uint8_t code[512];
	uint32_t seed = 12345;

	for (int round = 0; round < 2000; round++) {
		struct store_site sites[MAX_STORES];
		int nr;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 1103515245u + 12345u;
			code[i] = seed >> 16;
		}
		nr = store_finder_find(code, sizeof(code), sites, MAX_STORES);
		assert_in_range(nr, 0, MAX_STORES);
		for (int i = 0; i < nr; i++)
			assert_true(sites[i].offset < sizeof(code));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glibc_stores_through_rbp),
		cmocka_unit_test(musl_stores_through_rbx),
		cmocka_unit_test(high_registers_have_their_names),
		cmocka_unit_test(other_moves_are_no_stores),
		cmocka_unit_test(data_after_a_jump_is_not_code),
		cmocka_unit_test(loops_and_stray_jumps_end),
		cmocka_unit_test(random_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
