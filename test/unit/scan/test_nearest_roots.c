/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which root of a made-up process leads to each block. */
#include "scan/heaps/heap_read.h"
#include "scan/marking/nearest_roots.h"
#include "test/support/heap_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* Words of data are groups by their place; all others are one. */
#define OTHER_GROUP 1000

static unsigned rank_of(void *context, const struct root_range *range)
{
	return range->kind == ROOT_DATA ? 0 : range->kind == ROOT_STACK ? 1 : 2;
}

static uint16_t group_of(void *context, const struct root_range *range, uint64_t offset)
{
	uint64_t at = range->address + offset;

	return at - HEAP_IMAGE_DATA < SCAN_PAGE_SIZE ? (uint16_t)(at - HEAP_IMAGE_DATA) + 1
						     : OTHER_GROUP;
}

static void expect(struct heap_image *image, const uint64_t *blocks, const uint16_t *expected,
		   size_t nr)
{
	const struct root_groups groups = {NULL, rank_of, 2, group_of};
	struct heap heap;
	struct thread_stacks stacks;
	struct roots roots;
	struct marking marking;
	uint16_t *found = NULL;

	heap_image_end(image);
	assert_int_equal(heap_read(&heap, &image->snapshot, NULL), 0);
	assert_int_equal(thread_stacks_find(&stacks, &image->snapshot), 0);
	assert_int_equal(roots_init(&roots, &heap, &stacks), 0);
	assert_int_equal(marking_init(&marking, &heap, &roots), 0);
	assert_int_equal(nearest_roots_find(&marking, &groups, &found), 0);
	for (size_t i = 0; i < nr; i++) {
		uint64_t offset;
		uint32_t block = heap_find_block(&heap, blocks[i], &offset);

		assert_int_not_equal(block, HEAP_NONE);
		assert_int_equal(found[block], expected[i]);
	}
	free(found);
	marking_deinit(&marking);
	roots_deinit(&roots);
	heap_deinit(&heap);
	heap_image_deinit(image);
}

static void add_blocks(struct heap_image *image, uint64_t *blocks, size_t nr)
{
	heap_image_init(image);
	for (size_t i = 0; i < nr; i++)
		blocks[i] = heap_image_add(image, 56);
}

/* A list from @8 to the end, which @16 points to. */
static void fewest_steps_count(void **state)
{
	struct heap_image image;
	uint64_t b[5];

	add_blocks(&image, b, 5);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[0]);
	for (int i = 0; i < 4; i++)
		heap_image_set(&image, b[i] + 8, b[i + 1]);
	heap_image_set(&image, HEAP_IMAGE_DATA + 16, b[3]);
	expect(&image, b, (const uint16_t[]){9, 9, 9, 17, 17}, 5);
}

static void variables_come_before_stacks(void **state)
{
	struct heap_image image;
	uint64_t b[5];

	add_blocks(&image, b, 5);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[0]);
	heap_image_set(&image, b[0], b[1]);
	heap_image_set(&image, b[1], b[2]);
	heap_image_set(&image, HEAP_IMAGE_SP + 16, b[2]);
	heap_image_set(&image, HEAP_IMAGE_SP + 24, b[3]);
	/* The third rank is not asked. */
	image.snapshot.threads[0].registers.general[1].value = b[4];
	expect(&image, b, (const uint16_t[]){9, 9, 9, OTHER_GROUP, NEAREST_NONE}, 5);
}

static void lost_blocks_have_none(void **state)
{
	struct heap_image image;
	uint64_t b[4];

	add_blocks(&image, b, 4);
	heap_image_set(&image, b[0], b[1]);
	/* Only below the stack pointer. */
	heap_image_set(&image, HEAP_IMAGE_SP - 8, b[2]);
	/* Into a block. */
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[3] + 21);
	expect(&image, b, (const uint16_t[]){NEAREST_NONE, NEAREST_NONE, NEAREST_NONE, 9}, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewest_steps_count),
		cmocka_unit_test(variables_come_before_stacks),
		cmocka_unit_test(lost_blocks_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
