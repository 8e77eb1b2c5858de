/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cached walk is found only if everything that decided it is unchanged. */
#include "unwind/frames/walk_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define NR_WORDS   32
#define SP	   0x7ffe00001000
#define GENERATION 7
#define PC	   0x401000
#define RBP	   6

/* A stack of three frames, by the stack pointer, by a register, and by a saved register. */
struct fixture {
	struct walk_cache cache;
	struct dump_registers registers;
	uint64_t words[NR_WORDS];
	struct stack_dump dump;
	struct unwound_stack stack;
};

static const struct walk_frame walk[] = {
	{.address = PC, .return_at = 16},
	{.address = 0x402000,
	 .base = BASE_REGISTER,
	 .base_at = RBP,
	 .distance = 40,
	 .return_at = 48},
	{.address = 0x403000, .base = BASE_WORD, .base_at = 40, .distance = 80, .return_at = 88},
	{.address = 0, .is_last = true, .distance = 96},
};

static void lay_out(struct fixture *fixture, uint64_t sp)
{
	memset(fixture->words, 0x55, sizeof(fixture->words));
	fixture->words[2] = 0x402000;
	fixture->words[6] = 0x403000;
	fixture->words[5] = sp + 80;
	fixture->words[11] = 0;
	fixture->registers = (struct dump_registers){.pc = PC, .sp = sp};
	fixture->registers.dwarf[RBP] = sp + 40;
	fixture->dump = (struct stack_dump){
		.bytes = (const uint8_t *)fixture->words,
		.nr_bytes = sizeof(fixture->words),
	};
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || walk_cache_init(&fixture->cache))
		return -1;
	lay_out(fixture, SP);
	walk_cache_add(&fixture->cache, GENERATION, &fixture->dump, &fixture->registers, walk,
		       sizeof(walk) / sizeof(walk[0]));
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	walk_cache_deinit(&fixture->cache);
	free(fixture);
	return 0;
}

static bool find(struct fixture *fixture)
{
	return walk_cache_find(&fixture->cache, GENERATION, &fixture->dump, &fixture->registers,
			       &fixture->stack);
}

static void assert_walk(const struct fixture *fixture, uint64_t sp)
{
	const struct unwound_stack *stack = &fixture->stack;

	assert_int_equal(stack->nr, 3);
	assert_true(stack->complete);
	assert_false(stack->truncated);
	assert_int_equal(stack->top, sp + 96);
	for (size_t i = 0; i < stack->nr; i++) {
		assert_int_equal(stack->addresses[i], walk[i].address);
		assert_int_equal(stack->is_call[i], i > 0);
	}
}

static void is_found_wherever_the_stack_is(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t sp = SP; sp < SP + 0x100000; sp += 0x10010) {
		lay_out(fixture, sp);
		assert_true(find(fixture));
		assert_walk(fixture, sp);
	}
}

/* Changes each word in turn: only words that the walk depends on may matter. */
static void what_decides_is_checked(void **state)
{
	struct fixture *fixture = *state;

	for (size_t i = 0; i < NR_WORDS; i++) {
		bool decides = i == 2 || i == 5 || i == 6 || i == 11;

		lay_out(fixture, SP);
		fixture->words[i] += 8;
		assert_int_equal(find(fixture), !decides);
	}
	lay_out(fixture, SP);
	fixture->registers.dwarf[RBP] += 16;
	assert_false(find(fixture));
	lay_out(fixture, SP);
	fixture->registers.dwarf[RBP + 1] += 16;
	assert_true(find(fixture));
	fixture->registers.pc++;
	assert_false(find(fixture));
}

static void each_state_of_an_address_space_is_its_own(void **state)
{
	struct fixture *fixture = *state;

	assert_false(walk_cache_find(&fixture->cache, GENERATION + 1, &fixture->dump,
				     &fixture->registers, &fixture->stack));
	assert_true(find(fixture));
}

/* The rest of the dump, in a block of exactly its size, so that reading past it is detected. */
static bool find_in(struct fixture *fixture, size_t nr_bytes)
{
	uint8_t *bytes = malloc(nr_bytes ? nr_bytes : 1);
	bool found;

	assert_non_null(bytes);
	memcpy(bytes, fixture->words, nr_bytes);
	fixture->dump.bytes = bytes;
	fixture->dump.nr_bytes = nr_bytes;
	found = find(fixture);
	free(bytes);
	return found;
}

/* The dump ends before one of the return addresses: the walk is known up to there. */
static void walks_end_where_the_dump_does(void **state)
{
	struct fixture *fixture = *state;
	const struct unwound_stack *stack = &fixture->stack;
	size_t nr = 1;

	for (size_t nr_bytes = 0; nr_bytes < 96; nr_bytes++) {
		nr += nr_bytes == walk[nr - 1].return_at + 8;
		assert_true(find_in(fixture, nr_bytes));
		assert_false(stack->complete);
		assert_true(stack->truncated);
		assert_int_equal(stack->nr, nr);
		assert_int_equal(stack->addresses[nr - 1], walk[nr - 1].address);
		assert_int_equal(stack->is_call[nr - 1], nr > 1);
		assert_int_equal(stack->top, SP + walk[nr - 1].return_at + 8);
	}
	for (size_t nr_bytes = 96; nr_bytes <= sizeof(fixture->words); nr_bytes++) {
		assert_true(find_in(fixture, nr_bytes));
		assert_walk(fixture, SP);
	}
}

/* A register saved above the dump's end is not known: the rules must decide. */
static void what_is_not_in_the_dump_is_not_read(void **state)
{
	struct fixture *fixture = *state;
	struct walk_frame high[4];

	memcpy(high, walk, sizeof(high));
	high[2].base_at = 64;
	fixture->words[8] = SP + 80;
	fixture->words[5] = 0;
	assert_false(find(fixture));
	walk_cache_add(&fixture->cache, GENERATION, &fixture->dump, &fixture->registers, high, 4);
	for (size_t nr_bytes = 0; nr_bytes <= sizeof(fixture->words); nr_bytes++)
		assert_int_equal(find_in(fixture, nr_bytes), nr_bytes < 56 || nr_bytes >= 72);
}

/* The same addresses, but a frame between them has another size. */
static void variants_are_told_apart(void **state)
{
	struct fixture *fixture = *state;
	struct walk_frame variant[4];

	memcpy(variant, walk, sizeof(variant));
	variant[1].distance = 104;
	variant[1].return_at = 112;
	variant[2].base_at = 104;
	variant[2].distance = 136;
	variant[2].return_at = 144;
	variant[3].distance = 152;
	fixture->registers.dwarf[RBP] = SP + 104;
	fixture->words[14] = 0x403000;
	fixture->words[13] = SP + 136;
	fixture->words[18] = 0;
	assert_false(find(fixture));
	walk_cache_add(&fixture->cache, GENERATION, &fixture->dump, &fixture->registers, variant,
		       4);
	for (int i = 0; i < 3; i++) {
		fixture->registers.dwarf[RBP] = SP + 104;
		assert_true(find(fixture));
		assert_int_equal(fixture->stack.top, SP + 152);
		fixture->registers.dwarf[RBP] = SP + 40;
		assert_true(find(fixture));
		assert_walk(fixture, SP);
	}
}

/* More walks than fit: found walks are right, and repeated ones are found. */
static void a_full_cache_forgets_but_does_not_err(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 1, nr_found = 0;

	fixture->registers.pc = PC + 16;
	for (int i = 0; i < 200000; i++) {
		struct walk_frame frames[3] = {{.address = PC + 16, .return_at = 0},
					       {.return_at = 8},
					       {.is_last = true, .distance = 16}};

		random = random * 6364136223846793005u + 1442695040888963407u;
		/* Half of them are the same eight. */
		frames[1].address = 0x500000 + (random >> 63 ? (random >> 40) % 8
							     : 8 + (random >> 40) % 100000);
		frames[2].address = frames[1].address * 3;
		fixture->words[0] = frames[1].address;
		fixture->words[1] = frames[2].address;
		if (find(fixture)) {
			nr_found++;
			assert_int_equal(fixture->stack.nr, 3);
			assert_int_equal(fixture->stack.addresses[1], frames[1].address);
			assert_int_equal(fixture->stack.addresses[2], frames[2].address);
		} else {
			walk_cache_add(&fixture->cache, GENERATION + 1, &fixture->dump,
				       &fixture->registers, frames, 3);
			walk_cache_add(&fixture->cache, GENERATION, &fixture->dump,
				       &fixture->registers, frames, 3);
		}
	}
	assert_in_range(nr_found, 80000, 199999);
}

/* Walks that never repeat: the cache stops looking for a while, and starts again later. */
static void what_is_of_no_use_is_left_for_a_while(void **state)
{
	struct fixture *fixture = *state;
	uint64_t nr_skipped = 0;

	fixture->registers.pc = 1;
	for (int i = 0; i < 100000; i++) {
		assert_false(find(fixture));
		nr_skipped += fixture->cache.nr_skipped > 0;
	}
	assert_in_range(nr_skipped, 90000, 99999);
	fixture->registers.pc = PC;
	for (int i = 0; i < 20000; i++)
		find(fixture);
	assert_true(find(fixture));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_found_wherever_the_stack_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_decides_is_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_state_of_an_address_space_is_its_own, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(walks_end_where_the_dump_does, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_in_the_dump_is_not_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(variants_are_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_cache_forgets_but_does_not_err, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_of_no_use_is_left_for_a_while, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
