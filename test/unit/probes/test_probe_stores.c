/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store finder, on code captured from libcs and on what it must not take for a store. */
#include "probes/x86/store_finder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_STORES 8

/* posix_memalign of glibc 2.36 (Debian 12). */
static const uint8_t glibc_code[] = {
	0x80, 0x3d, 0x01, 0x02, 0x14, 0x00, 0x00, 0x41, 0x54, 0x49, 0x89, 0xd4, 0x55, 0x48, 0x89,
	0xfd, 0x53, 0x48, 0x89, 0xf3, 0x74, 0x5a, 0x48, 0x89, 0xda, 0x48, 0xc1, 0xea, 0x03, 0x48,
	0x8d, 0x42, 0xff, 0x48, 0x21, 0xd0, 0x48, 0x89, 0xda, 0x83, 0xe2, 0x07, 0x48, 0x09, 0xd0,
	0x75, 0x31, 0x48, 0x85, 0xdb, 0x74, 0x2c, 0x4c, 0x89, 0xe6, 0x48, 0x89, 0xdf, 0xe8, 0x91,
	0xe9, 0xff, 0xff, 0x48, 0x89, 0xc2, 0xb8, 0x0c, 0x00, 0x00, 0x00, 0x48, 0x85, 0xd2, 0x74,
	0x06, 0x48, 0x89, 0x55, 0x00, 0x31, 0xc0, 0x5b, 0x5d, 0x41, 0x5c, 0xc3, 0x66, 0x0f, 0x1f,
	0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xb8, 0x16, 0x00, 0x00, 0x00, 0x5d, 0x41, 0x5c,
	0xc3, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xe8, 0xfb, 0xaf, 0xff, 0xff, 0xeb, 0x9f,
};

static void glibc_stores_through_rbp(void **state)
{
	struct store_site sites[MAX_STORES];

	assert_int_equal(sizeof(glibc_code), 119);
	assert_int_equal(store_finder_find(glibc_code, sizeof(glibc_code), sites, MAX_STORES), 1);
	assert_int_equal(sites[0].offset, 0x4c);
	assert_string_equal(sites[0].base_register, "bp");
	assert_string_equal(sites[0].value_register, "dx");
}

static void musl_stores_through_rbx(void **state)
{
	/* From posix_memalign of musl 1.2.3: test %rax,%rax; je; mov %rax,(%rbx); ...; pop; ret */
	static const uint8_t code[] = {0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0x89,
				       0x03, 0x31, 0xc0, 0x5b, 0xc3, 0x5b, 0xc3};
	struct store_site sites[MAX_STORES];

	assert_int_equal(store_finder_find(code, sizeof(code), sites, MAX_STORES), 1);
	assert_int_equal(sites[0].offset, 5);
	assert_string_equal(sites[0].base_register, "bx");
	assert_string_equal(sites[0].value_register, "ax");
}

static void high_registers_have_their_names(void **state)
{
	/* mov %r12,(%r15); mov %r8,0x0(%r13); ret */
	static const uint8_t code[] = {0x4d, 0x89, 0x27, 0x4d, 0x89, 0x45, 0x00, 0xc3};
	struct store_site sites[MAX_STORES];

	assert_int_equal(store_finder_find(code, sizeof(code), sites, MAX_STORES), 2);
	assert_string_equal(sites[0].base_register, "r15");
	assert_string_equal(sites[0].value_register, "r12");
	assert_int_equal(sites[1].offset, 3);
	assert_string_equal(sites[1].base_register, "r13");
	assert_string_equal(sites[1].value_register, "r8");
	assert_int_equal(store_finder_find(code, sizeof(code), sites, 1), 1);
}

static void other_moves_are_no_stores(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0x04, 0x24,			  /* mov %rax,(%rsp) */
		0x48, 0x89, 0x43, 0x08,			  /* mov %rax,8(%rbx) */
		0x48, 0x89, 0x04, 0x0b,			  /* mov %rax,(%rbx,%rcx) */
		0x89, 0x03,				  /* mov %eax,(%rbx) */
		0x48, 0x8b, 0x03,			  /* mov (%rbx),%rax */
		0x48, 0x89, 0x05, 0x00, 0x00, 0x00, 0x00, /* mov %rax,0(%rip) */
		0x64, 0x48, 0x89, 0x03,			  /* mov %rax,%fs:(%rbx) */
		0x48, 0xc7, 0x03, 0x00, 0x00, 0x00, 0x00, /* movq $0,(%rbx) */
		0x48, 0x01, 0x03,			  /* add %rax,(%rbx) */
		0xc3,
	};
	struct store_site sites[MAX_STORES];

	assert_int_equal(store_finder_find(code, sizeof(code), sites, MAX_STORES), 0);
}

static void data_behind_a_jump_is_not_code(void **state)
{
	/* jmp over 4 bytes that would read as a store, misaligned with what follows; ret */
	static const uint8_t code[] = {0xeb, 0x04, 0x90, 0x48, 0x89, 0x03, 0xc3, 0x48, 0x89, 0x03};
	struct store_site sites[MAX_STORES];

	assert_int_equal(store_finder_find(code, sizeof(code), sites, MAX_STORES), 0);
}

static void loops_and_stray_jumps_end(void **state)
{
	/* jmp to itself; jne out of the function, both ways */
	static const uint8_t self[] = {0xeb, 0xfe};
	static const uint8_t out[] = {0x75, 0x70, 0x75, 0x80, 0x48, 0x89};
	struct store_site sites[MAX_STORES];

	assert_int_equal(store_finder_find(self, sizeof(self), sites, MAX_STORES), 0);
	assert_int_equal(store_finder_find(out, sizeof(out), sites, MAX_STORES), 0);
	assert_int_equal(store_finder_find(self, 0, sites, MAX_STORES), 0);
	assert_int_equal(
		store_finder_find(self, STORE_FINDER_MAX_CODE_BYTES + 1, sites, MAX_STORES),
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
		cmocka_unit_test(data_behind_a_jump_is_not_code),
		cmocka_unit_test(loops_and_stray_jumps_end),
		cmocka_unit_test(random_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
