/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap model alone: counts, remembered releases, copies. */
#include "parser/heap/heap_model.h"
#include "parser/heap/heap_table.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static struct shared_memory memory;

static int setup(void **state)
{
	*state = heap_create(&memory);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	heap_destroy(*state);
	return 0;
}

static struct heap_op op_at(uint64_t sequence)
{
	return (struct heap_op){.time_ns = sequence * 10, .sequence = sequence, .pid = 1, .tid = 2};
}

static int alloc_at(struct heap *heap, uint64_t address, uint64_t size, uint64_t sequence)
{
	struct heap_block previous, block = {
					    .address = address,
					    .size_bytes = size,
					    .size_known = true,
					    .allocated = op_at(sequence),
				    };

	return heap_alloc(heap, &block, &previous);
}

static int free_at(struct heap *heap, uint64_t address, uint64_t sequence)
{
	struct heap_op released, op = op_at(sequence);
	struct heap_block block;

	return heap_release(heap, address, &op, &block, &released);
}

static int add_size(void *context, const struct heap_block *block)
{
	*(uint64_t *)context += block->size_bytes;
	return 0;
}

static uint64_t held_bytes(const struct heap *heap)
{
	uint64_t bytes = 0;

	assert_int_equal(heap_for_each(heap, add_size, &bytes), 0);
	return bytes;
}

static void holds_and_releases(void **state)
{
	struct heap *heap = *state;
	struct heap_op released, op = op_at(7);
	struct heap_block block;

	assert_int_equal(alloc_at(heap, 0x10, 100, 1), HEAP_OK);
	assert_int_equal(alloc_at(heap, 0x20, 50, 2), HEAP_OK);
	assert_int_equal(heap_nr_blocks(heap), 2);
	assert_int_equal(held_bytes(heap), 150);
	assert_int_equal(heap_find(heap, 0x10)->size_bytes, 100);

	assert_int_equal(heap_release(heap, 0x10, &op, &block, &released), HEAP_OK);
	assert_int_equal(block.size_bytes, 100);
	assert_int_equal(block.allocated.sequence, 1);
	assert_null(heap_find(heap, 0x10));
	assert_int_equal(heap_nr_blocks(heap), 1);
	assert_int_equal(held_bytes(heap), 50);
	assert_int_equal(free_at(heap, 0x30, 8), HEAP_UNKNOWN);
	assert_null(heap_find_release(heap, 0x30));
}

static void tells_who_released_first(void **state)
{
	struct heap *heap = *state;
	struct heap_op released, op = op_at(9);
	struct heap_block block;

	alloc_at(heap, 0x10, 100, 1);
	free_at(heap, 0x10, 5);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(heap_release(heap, 0x10, &op, &block, &released),
				 HEAP_DOUBLE_FREE);
		assert_int_equal(block.allocated.sequence, 1);
		assert_int_equal(released.sequence, 5);
	}
	assert_int_equal(heap_find_release(heap, 0x10)->sequence, 5);
	assert_int_equal(alloc_at(heap, 0x10, 1, 10), HEAP_OK);
	assert_null(heap_find_release(heap, 0x10));
	assert_int_equal(free_at(heap, 0x10, 11), HEAP_OK);
}

static void replaces_a_block_still_held(void **state)
{
	struct heap *heap = *state;
	struct heap_block previous, block = {.address = 0x10, .size_bytes = 7};

	alloc_at(heap, 0x10, 100, 1);
	assert_int_equal(heap_alloc(heap, &block, &previous), HEAP_STILL_HELD);
	assert_int_equal(previous.size_bytes, 100);
	assert_int_equal(heap_nr_blocks(heap), 1);
	assert_int_equal(held_bytes(heap), 7);
}

static void takes_a_release_back(void **state)
{
	struct heap *heap = *state;
	struct heap_block block;

	alloc_at(heap, 0x10, 100, 1);
	block = *heap_find(heap, 0x10);
	free_at(heap, 0x10, 2);
	assert_int_equal(heap_unrelease(heap, &block, 99), 0);
	assert_int_equal(heap_unrelease(heap, &block, 2), 1);
	assert_memory_equal(heap_find(heap, 0x10), &block, sizeof(block));
	assert_int_equal(heap->nr_releases, 0);
	assert_int_equal(held_bytes(heap), 100);

	/* Allocated again meanwhile: not changed. */
	free_at(heap, 0x10, 3);
	alloc_at(heap, 0x10, 5, 4);
	assert_int_equal(heap_unrelease(heap, &block, 3), 0);
	assert_int_equal(heap_find(heap, 0x10)->size_bytes, 5);
}

static void withdraws_and_settles(void **state)
{
	struct heap *heap = *state;
	struct heap_block ret, block = {.address = 0x10,
					.size_bytes = 7,
					.provisional = true,
					.allocated = op_at(3)};

	assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
	assert_false(heap_settle(heap, 0x10, 4, &ret));
	assert_true(heap_settle(heap, 0x10, 3, &ret));
	assert_false(heap_settle(heap, 0x10, 3, &ret));
	assert_false(heap_find(heap, 0x10)->provisional);
	assert_false(heap_withdraw(heap, 0x10, 4, &ret));
	assert_true(heap_withdraw(heap, 0x10, 3, &ret));
	assert_int_equal(heap_nr_blocks(heap), 0);
	assert_int_equal(held_bytes(heap), 0);
	assert_int_equal(free_at(heap, 0x10, 5), HEAP_UNKNOWN);
}

static void copies_for_a_child(void **state)
{
	struct heap *heap = *state, *copy;

	alloc_at(heap, 0x10, 100, 1);
	alloc_at(heap, 0x20, 50, 2);
	free_at(heap, 0x20, 3);
	copy = heap_copy(heap);
	assert_non_null(copy);
	assert_true(heap_find(copy, 0x10)->inherited);
	assert_false(heap_find(heap, 0x10)->inherited);
	assert_int_equal(free_at(copy, 0x20, 4), HEAP_DOUBLE_FREE);
	assert_int_equal(free_at(copy, 0x10, 5), HEAP_OK);
	assert_non_null(heap_find(heap, 0x10));
	alloc_at(copy, 0x30, 1, 6);
	alloc_at(copy, 0x10, 1, 7);
	heap_bury(copy);
	assert_int_equal(heap_nr_blocks(copy), 2);
	heap_destroy(copy);
}

static void bury_keeps_its_own_blocks_only(void **state)
{
	struct heap *heap = *state;
	struct heap_block ret, block = {.address = 0x40, .size_bytes = 9, .inherited = true};

	alloc_at(heap, 0x10, 100, 1);
	alloc_at(heap, 0x20, 50, 2);
	free_at(heap, 0x20, 3);
	heap_alloc(heap, &block, &ret);
	heap_bury(heap);
	assert_int_equal(heap_nr_blocks(heap), 1);
	assert_int_equal(held_bytes(heap), 100);
	assert_int_equal(heap->nr_releases, 0);
	assert_non_null(heap_find(heap, 0x10));
}

static void forgets_the_oldest_releases(void **state)
{
	struct heap *heap = *state;
	uint64_t nr = HEAP_MAX_RELEASES + 10;

	for (uint64_t i = 1; i <= nr; i++) {
		alloc_at(heap, i * 16, 8, i);
		free_at(heap, i * 16, i);
	}
	assert_int_equal(heap->nr_releases, HEAP_MAX_RELEASES);
	assert_int_equal(free_at(heap, 10 * 16, nr + 1), HEAP_UNKNOWN);
	assert_int_equal(free_at(heap, 11 * 16, nr + 2), HEAP_DOUBLE_FREE);
	assert_int_equal(free_at(heap, nr * 16, nr + 3), HEAP_DOUBLE_FREE);
}

static int count_visits(void *context, const struct heap_block *block)
{
	int *nr = context;

	return ++*nr == 2 ? -1 : 0;
}

static void visits_until_told_to_stop(void **state)
{
	struct heap *heap = *state;
	int nr = 0;

	for (uint64_t i = 1; i <= 5; i++)
		alloc_at(heap, i, 1, i);
	free_at(heap, 1, 6);
	assert_int_equal(heap_for_each(heap, count_visits, &nr), -1);
	assert_int_equal(nr, 2);
	nr = 2; /* so that it never stops: this address is not held */
	assert_int_equal(heap_for_each(heap, count_visits, &nr), 0);
	assert_int_equal(nr, 6);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(holds_and_releases),
		TEST(tells_who_released_first),
		TEST(replaces_a_block_still_held),
		TEST(takes_a_release_back),
		TEST(withdraws_and_settles),
		TEST(copies_for_a_child),
		TEST(bury_keeps_its_own_blocks_only),
		TEST(forgets_the_oldest_releases),
		TEST(visits_until_told_to_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
