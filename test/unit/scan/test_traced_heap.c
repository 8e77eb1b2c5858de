/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A made-up process whose allocator is not known: of its blocks, only a list. */
#include "scan/analysis/scan.h"
#include "test/support/heap_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define AT(offset) (HEAP_IMAGE_HEAP + (offset))
#define MAX_BLOCKS 16

struct list {
	struct traced_block blocks[MAX_BLOCKS];
	size_t nr;
	int err;
};

static int read_list(void *context, const struct snapshot *snapshot, struct traced_blocks *ret)
{
	const struct list *list = context;

	ret->blocks = calloc(MAX_BLOCKS, sizeof(*ret->blocks));
	memcpy(ret->blocks, list->blocks, sizeof(list->blocks));
	ret->nr = list->nr;
	return list->err;
}

/* Without a trace of glibc. */
static void init_image(struct heap_image *image)
{
	heap_image_init(image);
	for (uint64_t at = 0; at < SCAN_PAGE_SIZE; at += 8)
		heap_image_set(image, HEAP_IMAGE_LIBC + at, 0);
}

static enum reach_class class_at(const struct scan *scan, uint64_t address)
{
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block = heap_find_block(&scan->heap, address, &offset);

	return block == HEAP_NONE || offset ? REACH_NOT_SCANNED : scan_class_of(scan, block, &lost);
}

static void only_listed_blocks_are_known(void **state)
{
	struct list list = {
		.blocks = {{AT(0x40), 64},
			   {AT(0x80), 24},
			   {AT(0xc0), 40},
			   {AT(0x100), 100},
			   {AT(0x200), 32}},
		.nr = 5,
	};
	struct traced_source source = {read_list, &list};
	struct lost_before before_blocks[] = {{AT(0xc0), 40}, {AT(0x200), 32}};
	struct lost_list before = {before_blocks, 2};
	struct heap_image image;
	struct scan scan;

	init_image(&image);
	heap_image_set(&image, HEAP_IMAGE_DATA, AT(0x40));
	heap_image_set(&image, AT(0x40 + 8), AT(0x80)); /* the block after it, without a gap */
	heap_image_set(&image, AT(0x180), AT(0x104));	/* memory that is no listed block */
	heap_image_set(&image, AT(0xc0), AT(0x200));	/* one that nothing points to */
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, &before), 0);
	assert_true(scan.heap.is_traced && scan.may_say_lost);
	assert_int_equal(scan.heap.map.nr_blocks, 5);
	assert_int_equal(class_at(&scan, AT(0x40)), REACH_POINTED);
	assert_int_equal(class_at(&scan, AT(0x80)), REACH_POINTED);
	assert_int_equal(class_at(&scan, AT(0xc0)), REACH_NO_HOLDER);
	assert_int_equal(class_at(&scan, AT(0x100)), REACH_POSSIBLE);
	assert_int_equal(class_at(&scan, AT(0x200)), REACH_NO_HOLDER);
	assert_int_equal(scan.totals[REACH_NO_HOLDER].bytes, 72);
	scan_deinit(&scan);
	/* One snapshot says no more than for glibc's heap. */
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, NULL), 0);
	assert_int_equal(class_at(&scan, AT(0xc0)), REACH_UNKNOWN);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

/* What is left out may hold pointers. */
static void what_cannot_be_a_block_is_left_out(void **state)
{
	struct list list = {
		.blocks =
			{
				{AT(0x48), 24},	 /* not at a unit */
				{AT(0x80), 8},	 /* shares its unit */
				{AT(0x100), 64}, /* overlaps the next */
				{AT(0x120), 32},
				{AT(0x200), 20}, /* up to the next, which shares it */
				{AT(0x218), 24},
				{AT(SCAN_PAGE_SIZE - 16), 32}, /* not copied as a whole */
				{0x123450, 32},
				{UINT64_MAX - 15, 32},
				{AT(0x400), UINT64_MAX - AT(0x400)},
				{AT(0x300), 32},
				{AT(0x300), 32},
				{AT(0x280), 16},
			},
		.nr = 13,
	};
	struct traced_source source = {read_list, &list};
	struct heap_image image;
	struct scan scan;

	init_image(&image);
	heap_image_set(&image, AT(0x80), AT(0x280));
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, NULL), 0);
	assert_int_equal(scan.heap.map.nr_blocks, 1);
	assert_int_equal(class_at(&scan, AT(0x280)), REACH_POINTED);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

static void glibcs_heap_needs_no_list(void **state)
{
	struct list list = {.err = -EIO};
	struct traced_source source = {read_list, &list};
	struct heap_image image;
	struct scan scan;

	heap_image_init(&image);
	heap_image_add(&image, 56);
	heap_image_end(&image);
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, NULL), 0);
	assert_false(scan.heap.is_traced);
	scan_deinit(&scan);
	heap_image_deinit(&image);
	init_image(&image);
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, NULL), -EIO);
	scan_deinit(&scan);
	/* An empty one tells that there are no blocks, which is a result. */
	list.err = 0;
	assert_int_equal(scan_init(&scan, &image.snapshot, &source, NULL), 0);
	assert_true(scan.heap.is_traced && scan.heap.is_whole && !scan.heap.map.nr_blocks);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_listed_blocks_are_known),
		cmocka_unit_test(what_cannot_be_a_block_is_left_out),
		cmocka_unit_test(glibcs_heap_needs_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
