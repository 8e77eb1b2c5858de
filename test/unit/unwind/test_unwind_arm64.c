/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AArch64's dumps, made by hand, so that each machine can unwind them: code without call frame
 * information, signed return addresses, the link register. test_unwind_dump.c unwinds real stacks
 * on AArch64.
 */
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PID	   42
#define CODE	   0xaaaa00010000ull
#define CODE_BYTES 0x10000ull
#define STACK	   0xffff80000000ull
#define CALLER	   (CODE + 0x1004)
#define OUTER	   (CODE + 0x2004)
#define SIGNATURE  0x0035000000000000ull /* bits 54 to 48 */
#define ALL_REGS   0x1ffffffffull

enum { FP = 29, LINK = 30, SP = 31, PC = 32, NR_REGS };

struct made {
	struct stack_store *store;
	uint64_t regs[NR_REGS];
	uint64_t words[32]; /* from STACK on */
	struct stack_dump dump;
};

static void map_code(struct stack_store *store, uint64_t start)
{
	const struct stack_mapping mapping = {
		.pid = PID, .start = start, .len = CODE_BYTES, .path = "/nonexistent/code"};

	assert_int_equal(stack_store_map(store, &mapping), 0);
}

/* A function at its entry, below two frames. The outer one is the first: it has no caller. */
static int setup(void **state)
{
	struct made *made = calloc(1, sizeof(*made));

	if (!made || stack_store_create(NULL, &made->store))
		return -1;
	map_code(made->store, CODE);
	made->regs[PC] = CODE + 0x10;
	made->regs[SP] = STACK;
	made->regs[LINK] = CALLER;
	made->regs[FP] = STACK + 16;
	made->words[2] = STACK + 48;
	made->words[3] = OUTER;
	made->dump = (struct stack_dump){
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = ALL_REGS,
		.regs = made->regs,
		.bytes = (const uint8_t *)made->words,
		.nr_bytes = sizeof(made->words),
	};
	*state = made;
	return 0;
}

static int teardown(void **state)
{
	struct made *made = *state;

	stack_store_destroy(made->store);
	free(made);
	return 0;
}

static void assert_unwinds_to(struct made *made, const uint64_t *addresses, size_t nr)
{
	uint32_t id;

	assert_int_equal(stack_store_add_dump(made->store, PID, &made->dump, &id), 0);
	assert_int_equal(stack_store_nr_frames(made->store, id), nr);
	for (size_t i = 0; i < nr; i++) {
		struct stack_frame frame;

		assert_int_equal(stack_store_frame(made->store, id, i, &frame), 0);
		if (frame.address != addresses[i])
			fail_msg("frame %zu: 0x%llx", i, (unsigned long long)frame.address);
	}
}

static const uint64_t whole[] = {CODE + 0x10, CALLER, OUTER};

static void finds_the_caller_in_the_link_register(void **state)
{
	assert_unwinds_to(*state, whole, ARRAY_SIZE(whole));
}

/* The function has saved its frame record: the link register has the same address. */
static void counts_the_caller_once(void **state)
{
	struct made *made = *state;

	made->words[0] = made->regs[FP];
	made->words[1] = CALLER;
	made->regs[FP] = STACK;
	assert_unwinds_to(made, whole, ARRAY_SIZE(whole));
}

static void removes_signatures(void **state)
{
	struct made *made = *state;

	made->words[3] = OUTER | SIGNATURE;
	assert_unwinds_to(made, whole, ARRAY_SIZE(whole));
	/* With another tag in the top byte, which is the program's own. */
	made->words[3] = OUTER | SIGNATURE | 0xab00000000000000ull;
	made->regs[LINK] = CALLER | SIGNATURE;
	assert_unwinds_to(made, whole, ARRAY_SIZE(whole));
}

/* Where addresses have 39 bits, the signature begins at bit 39. */
static void knows_short_addresses(void **state)
{
	struct made *made = *state;
	const uint64_t code = 0x5500000000ull;
	const uint64_t expected[] = {code + 0x10, code + 0x1004};

	map_code(made->store, code);
	made->regs[PC] = expected[0];
	made->regs[LINK] = expected[1] | 0x007a580000000000ull;
	made->regs[FP] = 0;
	assert_unwinds_to(made, expected, ARRAY_SIZE(expected));
}

/* At a return the link register is old. */
static void ignores_the_link_register_at_a_return(void **state)
{
	struct made *made = *state;
	const uint64_t expected[] = {CODE + 0x500, CODE + 0x10, OUTER};

	made->dump.returned_from = CODE + 0x500;
	assert_unwinds_to(made, expected, ARRAY_SIZE(expected));
}

/* The registers that leakrec's BPF programs dump: x19 to x30, sp and pc. */
static void needs_only_preserved_registers(void **state)
{
	struct made *made = *state;

	made->dump.regs_mask = ALL_REGS & ~((1ull << 19) - 1);
	made->dump.regs = made->regs + 19;
	assert_unwinds_to(made, whole, ARRAY_SIZE(whole));
}

static void replaces_trampolines(void **state)
{
	struct made *made = *state;
	const uint64_t pending[] = {OUTER};

	made->words[3] = 0xfffff000ull | SIGNATURE; /* not mapped */
	made->dump.pending_returns = pending;
	made->dump.nr_pending_returns = 1;
	assert_unwinds_to(made, whole, ARRAY_SIZE(whole));
}

static void ends_where_the_dump_does(void **state)
{
	struct made *made = *state;
	const uint64_t expected[] = {CODE + 0x10, CALLER, STACK_TRUNCATED};

	made->dump.nr_bytes = 24;
	assert_unwinds_to(made, expected, ARRAY_SIZE(expected));
	assert_int_equal(stack_store_unwind_stats(made->store)->truncated, 1);
}

static void ends_at_a_circle(void **state)
{
	struct made *made = *state;

	for (int i = 0; i < 32; i++) {
		uint32_t id;

		made->words[2] = STACK + (uint64_t)i * 8;
		assert_int_equal(stack_store_add_dump(made->store, PID, &made->dump, &id), 0);
		assert_true(stack_store_nr_frames(made->store, id) < 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_the_caller_in_the_link_register, setup,
						teardown),
		cmocka_unit_test_setup_teardown(counts_the_caller_once, setup, teardown),
		cmocka_unit_test_setup_teardown(removes_signatures, setup, teardown),
		cmocka_unit_test_setup_teardown(knows_short_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(ignores_the_link_register_at_a_return, setup,
						teardown),
		cmocka_unit_test_setup_teardown(needs_only_preserved_registers, setup, teardown),
		cmocka_unit_test_setup_teardown(replaces_trampolines, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_where_the_dump_does, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_at_a_circle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
