/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Forked heaps share their unchanged parts: each must behave like a full copy, and memory must grow
 * with the changes, not with the number of forks.
 */
#include "parser/heap/heap_table.h"
#include "parser/processes/heap_space.h"
#include "test/support/heap_feed.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define NR_ADDRESSES 3000 /* about fifty pages */
#define NR_HEAPS     8

/* The state of one address, without sharing. */
struct known {
	enum { NEVER, HELD, RELEASED } state;
	struct heap_block block;
	struct heap_op released;
};

struct fork {
	struct heap *heap; /* NULL: unused */
	struct known known[NR_ADDRESSES];
	uint64_t seen; /* the last event before its young blocks were visited */
	bool is_young[NR_ADDRESSES];
};

struct tree {
	struct shared_memory memory;
	struct fork forks[NR_HEAPS];
	uint64_t random, sequence;
};

static uint64_t draw(struct tree *tree, uint64_t below)
{
	tree->random ^= tree->random << 13;
	tree->random ^= tree->random >> 7;
	tree->random ^= tree->random << 17;
	return tree->random % below;
}

static void assert_same_block(const struct heap_block *a, const struct heap_block *b)
{
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->size_bytes, b->size_bytes);
	assert_int_equal(a->inherited, b->inherited);
	assert_int_equal(a->provisional, b->provisional);
	assert_int_equal(a->allocated.sequence, b->allocated.sequence);
}

static void allocate(struct tree *tree, struct fork *fork, struct known *known, uint64_t address)
{
	struct heap_block previous, block = {
					    .address = address,
					    .size_bytes = draw(tree, 100),
					    .provisional = draw(tree, 4) == 0,
					    .allocated = {.sequence = ++tree->sequence},
				    };
	int result = heap_alloc(fork->heap, &block, &previous);

	assert_int_equal(result, known->state == HELD ? HEAP_STILL_HELD : HEAP_OK);
	if (known->state == HELD)
		assert_same_block(&previous, &known->block);
	*known = (struct known){.state = HELD, .block = block};
}

static void release(struct tree *tree, struct fork *fork, struct known *known, uint64_t address)
{
	struct heap_op op = {.sequence = ++tree->sequence}, released;
	struct heap_block block;
	int result = heap_release(fork->heap, address, &op, &block, &released);

	if (known->state == NEVER) {
		assert_int_equal(result, HEAP_UNKNOWN);
		return;
	}
	assert_same_block(&block, &known->block);
	if (known->state == RELEASED) {
		assert_int_equal(result, HEAP_DOUBLE_FREE);
		assert_int_equal(released.sequence, known->released.sequence);
		return;
	}
	assert_int_equal(result, HEAP_OK);
	known->state = RELEASED;
	known->released = op;
	if (draw(tree, 4))
		return;
	assert_int_equal(heap_unrelease(fork->heap, &block, op.sequence), 1);
	known->state = HELD;
}

static void withdraw(struct tree *tree, struct fork *fork, struct known *known, uint64_t address)
{
	uint64_t sequence = known->block.allocated.sequence;
	struct heap_block block;
	bool settles = known->state == HELD && known->block.provisional;

	assert_int_equal(heap_settle(fork->heap, address, sequence, &block), settles);
	if (settles)
		known->block.provisional = false;
	if (draw(tree, 2))
		return;
	assert_int_equal(heap_withdraw(fork->heap, address, sequence, &block),
			 known->state == HELD);
	if (known->state == HELD)
		*known = (struct known){0};
}

static void fork_heap(struct fork *child, struct fork *parent)
{
	child->heap = heap_copy(parent->heap);
	assert_non_null(child->heap);
	memcpy(child->known, parent->known, sizeof(child->known));
	child->seen = 0;
	for (size_t i = 0; i < NR_ADDRESSES; i++) {
		child->known[i].block.inherited = true;
		if (child->known[i].state == HELD)
			child->known[i].block.provisional = false;
	}
}

static void bury(struct fork *fork)
{
	assert_int_equal(heap_bury(fork->heap), 0);
	for (size_t i = 0; i < NR_ADDRESSES; i++)
		if (fork->known[i].state != HELD || fork->known[i].block.inherited)
			fork->known[i] = (struct known){0};
}

static void count_own(void *context, const struct heap_block *block)
{
	assert_false(block->inherited);
	++*(size_t *)context;
}

static int count_any(void *context, const struct heap_block *block)
{
	++*(size_t *)context;
	return 0;
}

static void compare(const struct fork *fork)
{
	size_t nr_held = 0, nr_own = 0, nr_any = 0, nr_releases = 0;

	for (size_t i = 0; i < NR_ADDRESSES; i++) {
		const struct known *known = &fork->known[i];
		const struct heap_block *block = heap_find(fork->heap, i * 16);
		const struct heap_op *op = heap_find_release(fork->heap, i * 16);

		assert_int_equal(block != NULL, known->state == HELD);
		assert_int_equal(op != NULL, known->state == RELEASED);
		if (block)
			assert_same_block(block, &known->block);
		if (op)
			assert_int_equal(op->sequence, known->released.sequence);
		nr_releases += known->state == RELEASED;
		if (known->state != HELD)
			continue;
		nr_held++;
		nr_own -= !known->block.inherited;
	}
	heap_for_each_own(fork->heap, count_own, &nr_own);
	assert_int_equal(heap_for_each(fork->heap, count_any, &nr_any), 0);
	assert_int_equal(nr_own, 0);
	assert_int_equal(nr_any, nr_held);
	assert_int_equal(heap_nr_blocks(fork->heap), nr_held);
	assert_int_equal(fork->heap->nr_releases, nr_releases);
}

static void note_young(void *context, const struct heap_block *block)
{
	struct fork *fork = context;
	uint64_t index = block->address / 16;

	assert_false(fork->is_young[index]);
	fork->is_young[index] = true;
	assert_int_equal(fork->known[index].state, HELD);
	assert_same_block(block, &fork->known[index].block);
	assert_false(block->inherited);
}

static void visit_young(struct tree *tree, struct fork *fork)
{
	memset(fork->is_young, 0, sizeof(fork->is_young));
	heap_for_each_young(fork->heap, note_young, fork);
	for (size_t i = 0; i < NR_ADDRESSES; i++) {
		const struct known *known = &fork->known[i];

		if (known->state == HELD && !known->block.inherited &&
		    known->block.allocated.sequence > fork->seen)
			assert_true(fork->is_young[i]);
	}
	fork->seen = tree->sequence;
	/* None has come since. */
	heap_for_each_young(fork->heap, note_young, fork);
}

static void step(struct tree *tree)
{
	struct fork *fork = &tree->forks[draw(tree, NR_HEAPS)];
	struct fork *other = &tree->forks[draw(tree, NR_HEAPS)];
	uint64_t address = draw(tree, NR_ADDRESSES), kind = draw(tree, 6000);
	struct known *known = &fork->known[address];

	if (!fork->heap && other->heap)
		fork_heap(fork, other);
	if (!fork->heap) {
		fork->heap = heap_create(&tree->memory);
		assert_non_null(fork->heap);
		memset(fork->known, 0, sizeof(fork->known));
		fork->seen = 0;
	}
	if (kind == 0) {
		heap_destroy(fork->heap);
		fork->heap = NULL;
	} else if (kind == 1) {
		bury(fork);
	} else if (kind < 10) {
		visit_young(tree, fork);
	} else if (kind < 3000) {
		allocate(tree, fork, known, address * 16);
	} else if (kind < 5500) {
		release(tree, fork, known, address * 16);
	} else {
		withdraw(tree, fork, known, address * 16);
	}
}

static void shared_heaps_are_like_copies(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct tree *tree = calloc(1, sizeof(*tree));

		assert_non_null(tree);
		tree->random = seed * 0x9e3779b97f4a7c15u;
		for (int i = 1; i <= 300000; i++) {
			step(tree);
			for (int j = 0; i % 2000 == 0 && j < NR_HEAPS; j++)
				if (tree->forks[j].heap)
					compare(&tree->forks[j]);
		}
		for (int i = 0; i < NR_HEAPS; i++)
			heap_destroy(tree->forks[i].heap);
		assert_int_equal(tree->memory.bytes, 0);
		free(tree);
	}
}

static void release_new(struct heap *heap, uint64_t address)
{
	struct heap_block block = {.address = address}, ret;
	struct heap_op op = {0}, released;

	assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
	assert_int_equal(heap_release(heap, address, &op, &ret, &released), HEAP_OK);
}

/* Each side of a fork forgets its oldest release first, and does not see the other's. */
static void each_side_forgets_its_own_releases(void **state)
{
	struct shared_memory memory = {0};
	struct heap *heap = heap_create(&memory), *copy;

	assert_non_null(heap);
	for (uint64_t i = 0; i < HEAP_MAX_RELEASES; i++)
		release_new(heap, i);
	copy = heap_copy(heap);
	assert_non_null(copy);
	for (uint64_t i = 0; i < 1000; i++) {
		release_new(copy, 1000000 + i);
		assert_null(heap_find_release(copy, i));
		assert_non_null(heap_find_release(copy, i + 1));
		assert_non_null(heap_find_release(heap, i));
	}
	for (uint64_t i = 0; i < 2000; i++) {
		release_new(heap, 1000000 + i);
		assert_null(heap_find_release(heap, i));
	}
	assert_non_null(heap_find_release(copy, 1000));
	assert_null(heap_find_release(copy, 1000000 + 1000));
	heap_destroy(heap);
	assert_int_equal(copy->nr_releases, HEAP_MAX_RELEASES);
	heap_destroy(copy);
	assert_int_equal(memory.bytes, 0);
}

static size_t used_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

#define NR_BLOCKS   50000
#define NR_CHILDREN 40

static void feed_blocks(struct feed *feed)
{
	feed_as(feed, 100, 100);
	for (uint64_t i = 0; i < NR_BLOCKS; i++)
		feed_malloc(feed, 64, 0x1000000 + i * 64);
}

/*
 * A server that forks for each request: each child is forked from the parent, or from the child
 * before.
 */
static void memory_does_not_multiply(bool nested)
{
	struct feed feed;
	size_t before, of_parent;

	before = used_bytes();
	feed_init(&feed, NULL);
	feed_blocks(&feed);
	of_parent = used_bytes() - before;
	for (pid_t child = 101; child <= 100 + NR_CHILDREN; child++) {
		feed_fork(&feed, child);
		feed_malloc(&feed, 8, 0x10);
		feed_as(&feed, child, child);
		feed_malloc(&feed, 8, 0x20);
		if (!nested)
			feed_as(&feed, 100, 100);
	}
	assert_true(used_bytes() - before <= 2 * of_parent);
	feed_deinit(&feed);
}

static void children_share(void **state)
{
	memory_does_not_multiply(false);
}

static void grandchildren_share(void **state)
{
	memory_does_not_multiply(true);
}

/* Many children that change everything that they inherited. */
static void copies_are_limited(void **state)
{
	struct heap_spaces spaces = {.max_copied_bytes = 8u << 20};
	struct heap_space *parent = heap_space_create(&spaces);
	struct heap_block block = {.size_bytes = 8}, ret, *held;
	struct heap_op op = {0}, released;
	size_t of_parent, nr;
	struct heap *heap;

	assert_non_null(parent);
	assert_int_equal(heap_space_open(parent, &heap), 0);
	for (block.address = 0; block.address < NR_BLOCKS; block.address++)
		assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
	of_parent = spaces.memory.bytes;
	for (size_t i = 0; i < NR_CHILDREN; i++) {
		struct heap_space *child = heap_space_fork(&spaces, parent);

		assert_non_null(child);
		assert_int_equal(heap_space_open(child, &heap), 0);
		assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
		for (uint64_t at = 0; at < NR_BLOCKS; at += 2)
			assert_int_equal(heap_release(heap, at, &op, &ret, &released), HEAP_OK);
		if (spaces.memory.bytes > spaces.limit_at)
			assert_int_equal(heap_spaces_limit(&spaces), 0);
	}
	/* At most one child more than the limit. */
	assert_true(spaces.memory.bytes < of_parent + (8u << 20) + 2 * of_parent);
	assert_in_range(spaces.nr_forgotten, NR_CHILDREN / 2, NR_CHILDREN);
	/* Held blocks are the same: the parent's, and each child's own. */
	assert_int_equal(heap_spaces_list_held(&spaces, &held, &nr), 0);
	assert_int_equal(nr, NR_BLOCKS + NR_CHILDREN);
	free(held);
	heap_spaces_deinit(&spaces);
	assert_int_equal(spaces.memory.bytes, 0);
}

struct burying_visit {
	struct heap *heap;
	bool seen[NR_ADDRESSES];
	bool is_buried;
};

static void see_and_bury(void *context, const struct heap_block *block)
{
	struct burying_visit *visit = context;

	visit->seen[block->address / 16] = true;
	if (!visit->is_buried)
		assert_int_equal(heap_bury(visit->heap), 0);
	visit->is_buried = true;
}

/* If too much memory is copied, what is done with a block may make its heap forget and move. */
static void no_young_block_is_missed_if_the_heap_moves(void **state)
{
	struct shared_memory memory = {0};
	struct heap_block block = {.size_bytes = 8}, ret;
	struct heap *parent = heap_create(&memory);
	struct burying_visit visit = {0};

	assert_non_null(parent);
	for (size_t i = 0; i < NR_ADDRESSES / 2; i++, block.address += 16)
		assert_int_equal(heap_alloc(parent, &block, &ret), HEAP_OK);
	visit.heap = heap_copy(parent);
	assert_non_null(visit.heap);
	for (size_t i = NR_ADDRESSES / 2; i < NR_ADDRESSES; i++, block.address += 16)
		assert_int_equal(heap_alloc(visit.heap, &block, &ret), HEAP_OK);
	heap_for_each_young(visit.heap, see_and_bury, &visit);
	for (size_t i = 0; i < NR_ADDRESSES; i++)
		assert_int_equal(visit.seen[i], i >= NR_ADDRESSES / 2);
	memset(visit.seen, 0, sizeof(visit.seen));
	heap_for_each_young(visit.heap, see_and_bury, &visit);
	for (size_t i = 0; i < NR_ADDRESSES; i++)
		assert_false(visit.seen[i]);
	heap_destroy(visit.heap);
	heap_destroy(parent);
	assert_int_equal(memory.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_heaps_are_like_copies),
		cmocka_unit_test(each_side_forgets_its_own_releases),
		cmocka_unit_test(children_share),
		cmocka_unit_test(grandchildren_share),
		cmocka_unit_test(copies_are_limited),
		cmocka_unit_test(no_young_block_is_missed_if_the_heap_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
