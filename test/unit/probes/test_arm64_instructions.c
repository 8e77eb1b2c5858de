/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AArch64 code: how the kernel runs each instruction under a probe, and the stores of a function.
 * The instructions are numbers, with what an assembler makes them of.
 */
#include "probes/arm64/instruction.h"
#include "probes/arm64/store_finder.h"

#include "common/scope.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	uint32_t instruction;
	enum placement_class class;
	const char *text;
} cases[] = {
	{0x54000040, PLACEMENT_EMULATED, "b.cond"},	       /* b.eq .+8 */
	{0xb4000040, PLACEMENT_EMULATED, "cbz"},	       /* cbz x0, .+8 */
	{0x35ffffe1, PLACEMENT_EMULATED, "cbnz"},	       /* cbnz w1, .-4 */
	{0xb6f80040, PLACEMENT_EMULATED, "tbz"},	       /* tbz x0, #63, .+8 */
	{0x37000041, PLACEMENT_EMULATED, "tbnz"},	       /* tbnz w1, #0, .+8 */
	{0x10000040, PLACEMENT_EMULATED, "adr"},	       /* adr x0, .+8 */
	{0xd0000040, PLACEMENT_EMULATED, "adrp"},	       /* adrp x0, .+0xa000 */
	{0x14000002, PLACEMENT_EMULATED, "b"},		       /* b .+8 */
	{0x97fffffe, PLACEMENT_EMULATED, "bl"},		       /* bl .-8 */
	{0xd61f0200, PLACEMENT_EMULATED, "br"},		       /* br x16 */
	{0xd63f0060, PLACEMENT_EMULATED, "blr"},	       /* blr x3 */
	{0xd65f03c0, PLACEMENT_EMULATED, "ret"},	       /* ret */
	{0xd503233f, PLACEMENT_STEPPED, "paciasp"},	       /* paciasp */
	{0xd503245f, PLACEMENT_STEPPED, "bti c"},	       /* bti c */
	{0xa9bd7bfd, PLACEMENT_STEPPED, ".inst 0xa9bd7bfd"},   /* stp x29, x30, [sp, #-48]! */
	{0x910003fd, PLACEMENT_STEPPED, ".inst 0x910003fd"},   /* mov x29, sp */
	{0xd53bd040, PLACEMENT_STEPPED, ".inst 0xd53bd040"},   /* mrs x0, tpidr_el0 */
	{0xd5033bbf, PLACEMENT_STEPPED, ".inst 0xd5033bbf"},   /* dmb ish */
	{0xd50323bf, PLACEMENT_REFUSED, "hint"},	       /* autiasp */
	{0xd503203f, PLACEMENT_REFUSED, "hint"},	       /* yield */
	{0x58000040, PLACEMENT_REFUSED, "ldr (literal)"},      /* ldr x0, .+8 */
	{0xc85f7c00, PLACEMENT_REFUSED, "load exclusive"},     /* ldxr x0, [x0] */
	{0xc8027c01, PLACEMENT_REFUSED, "store exclusive"},    /* stxr w2, x1, [x0] */
	{0xd4000001, PLACEMENT_REFUSED, "exception"},	       /* svc #0 */
	{0xd51bd040, PLACEMENT_REFUSED, "msr"},		       /* msr tpidr_el0, x0 */
	{0xd65f0bff, PLACEMENT_REFUSED, "ret, authenticated"}, /* retaa */
	{0xd73f0a11, PLACEMENT_REFUSED, "blr, authenticated"}, /* blraa x16, x17 */
};

static void put(uint8_t *code, const uint32_t *instructions, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < ARM64_INSTRUCTION_BYTES; j++)
			code[i * ARM64_INSTRUCTION_BYTES + j] =
				(uint8_t)(instructions[i] >> (8 * j));
}

static void kernels_run_instructions(void **state)
{
	const struct arm64_kernel kernel = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct placement_instruction is;
		uint8_t code[ARM64_INSTRUCTION_BYTES];

		put(code, &cases[i].instruction, 1);
		arm64_describe(code, sizeof(code), &kernel, &is);
		if (is.class != cases[i].class || strcmp(is.text, cases[i].text) != 0)
			fail_msg("0x%08x: %s %s", cases[i].instruction,
				 placement_class_name(is.class), is.text);
		arm64_describe(code, sizeof(code) - 1, &kernel, &is);
		assert_int_equal(is.class, PLACEMENT_UNKNOWN);
	}
}

static void newer_kernels_simulate_nop(void **state)
{
	const uint32_t nop = 0xd503201f;

	assert_int_equal(arm64_classify(nop, &(struct arm64_kernel){0}), PLACEMENT_STEPPED);
	assert_int_equal(arm64_classify(nop, &(struct arm64_kernel){.simulates_nop = true}),
			 PLACEMENT_EMULATED);
}

static void jumps_have_targets(void **state)
{
	int64_t distance;

	assert_true(arm64_is_jump(0x14000002, &distance)); /* b .+8 */
	assert_int_equal(distance, 8);
	assert_true(arm64_is_jump(0x17ffffff, &distance)); /* b .-4 */
	assert_int_equal(distance, -4);
	assert_true(arm64_is_jump(0x35ffffe1, &distance)); /* cbnz w1, .-4 */
	assert_int_equal(distance, -4);
	assert_true(arm64_is_jump(0xb6f80040, &distance)); /* tbz x0, #63, .+8 */
	assert_int_equal(distance, 8);
	assert_false(arm64_is_jump(0x97fffffe, &distance)); /* bl */
	assert_false(arm64_is_jump(0xd61f0200, &distance)); /* br x16 */
	assert_false(arm64_falls_through(0x14000002));
	assert_false(arm64_falls_through(0xd65f03c0)); /* ret */
	assert_false(arm64_falls_through(0xd65f0bff)); /* retaa */
	assert_true(arm64_falls_through(0xd63f0060));  /* blr x3 */
	assert_true(arm64_falls_through(0xd73f0a11));  /* blraa x16, x17 */
	assert_true(arm64_falls_through(0x97fffffe));  /* bl */
}

static int find(const uint32_t *instructions, size_t nr, struct store_site *ret, size_t max)
{
	uint8_t code[64];

	assert_true(nr * ARM64_INSTRUCTION_BYTES <= sizeof(code));
	put(code, instructions, nr);
	return arm64_find_stores(code, nr * ARM64_INSTRUCTION_BYTES, ret, max);
}

static void finds_stores(void **state)
{
	static const uint32_t code[] = {
		0xb4000080, /* 0: cbz x0, 0x10 */
		0xf9000274, /* 4: str x20, [x19] */
		0xf9000674, /* 8: str x20, [x19, #8] */
		0x14000003, /* c: b 0x18 */
		0xf90003e0, /* 10: str x0, [sp] */
		0xd65f03c0, /* 14: ret */
		0xf900001e, /* 18: str x30, [x0] */
		0xb9000274, /* 1c: str w20, [x19] */
		0xf900027f, /* 20: str xzr, [x19] */
		0xd65f03c0, /* 24: ret */
		0xf9000274, /* 28: data that looks like a store */
	};
	struct store_site sites[4];

	assert_int_equal(find(code, ARRAY_SIZE(code), sites, ARRAY_SIZE(sites)), 2);
	assert_int_equal(sites[0].offset, 4);
	assert_string_equal(sites[0].base_register, "x19");
	assert_string_equal(sites[0].value_register, "x20");
	assert_int_equal(sites[1].offset, 0x18);
	assert_string_equal(sites[1].base_register, "x0");
	assert_string_equal(sites[1].value_register, "x30");
	assert_int_equal(find(code, ARRAY_SIZE(code), sites, 1), 1);
}

static void hostile_code_ends(void **state)
{
	struct store_site sites[4];
	static const uint32_t loop[] = {0x14000000, 0xf9000274}; /* b . */
	static const uint32_t away[] = {0x54ffffe0, 0x15ffffff}; /* b.eq .-4; b far beyond */
	uint8_t *code = calloc(1, ARM64_MAX_CODE_BYTES + 4);

	assert_non_null(code);
	assert_int_equal(find(loop, ARRAY_SIZE(loop), sites, 4), 0);
	assert_int_equal(find(away, ARRAY_SIZE(away), sites, 4), 0);
	assert_int_equal(arm64_find_stores(code, 0, sites, 4), 0);
	assert_int_equal(arm64_find_stores(code, 3, sites, 4), 0);
	assert_int_equal(arm64_find_stores(code, ARM64_MAX_CODE_BYTES + 4, sites, 4), -E2BIG);
	srandom(1);
	for (int i = 0; i < 200; i++) {
		for (size_t j = 0; j < 4096; j++)
			code[j] = (uint8_t)random();
		assert_in_range(arm64_find_stores(code, 4096, sites, 4), 0, 4);
	}
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_run_instructions),
		cmocka_unit_test(newer_kernels_simulate_nop),
		cmocka_unit_test(jumps_have_targets),
		cmocka_unit_test(finds_stores),
		cmocka_unit_test(hostile_code_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
