/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several threads mark what one would: of a heap that is large enough for them. */
#include "scan/analysis/scan.h"
#include "scan/marking/place_cursor.h"
#include "scan/marking/work_queue.h"
#include "test/support/heap_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define CHUNK		 64u
#define HEAP_BYTES	 (16u << 20)
#define HEAP_PIECE_BYTES (4u << 20) /* as in place_cursor.c */
#define ROOT_PIECE_BYTES (256u << 10)
#define LIST_BLOCKS	 1000u
#define NR_LISTS	 200u

static uint64_t block_at(uint64_t nr)
{
	return HEAP_IMAGE_HEAP + 16 + nr * CHUNK;
}

static uint8_t *byte_at(const struct heap_image *image, uint64_t address)
{
	return (uint8_t *)snapshot_bytes(&image->snapshot, address, 1);
}

static enum reach_class class_of(const struct scan *scan, uint64_t nr)
{
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block = heap_find_block(&scan->heap, block_at(nr), &offset);

	assert_int_not_equal(block, HEAP_NONE);
	assert_int_equal(offset, 0);
	return scan_class_of(scan, block, &lost);
}

/* Lists with a root each; every tenth has none. */
static void init_lists(struct heap_image *image)
{
	heap_image_init_large(image, HEAP_BYTES, CHUNK);
	heap_image_enlarge(image, HEAP_IMAGE_DATA, 1 << 20);
	for (uint64_t i = 0; i < NR_LISTS; i++) {
		for (uint64_t k = 0; k + 1 < LIST_BLOCKS; k++)
			heap_image_set(image, block_at(i * LIST_BLOCKS + k),
				       block_at(i * LIST_BLOCKS + k + 1));
		if (i % 10)
			heap_image_set(image, HEAP_IMAGE_DATA + (i + 1) * SCAN_PAGE_SIZE + 512,
				       block_at(i * LIST_BLOCKS));
	}
}

static void lists_are_followed_to_their_ends(void **state)
{
	struct heap_image image;
	struct scan scan;
	uint64_t nr = NR_LISTS * LIST_BLOCKS, lost = nr / 10;

	init_lists(&image);
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(class_of(&scan, i),
				 i / LIST_BLOCKS % 10 ? REACH_HELD : REACH_UNKNOWN);
	assert_int_equal(scan.totals[REACH_HELD].nr, nr - lost);
	assert_int_equal(scan.totals[REACH_HELD].bytes, (nr - lost) * (CHUNK - 8));
	assert_int_equal(scan.totals[REACH_UNKNOWN].nr, scan.heap.map.nr_blocks - nr + lost);
	assert_int_equal(scan.totals[REACH_UNKNOWN].nr, scan.lost.nr);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

/* The address of block 5 of a lost list is at @at, not at a multiple of 8. */
static void assert_seen_at(struct heap_image *image, uint64_t at)
{
	const uint64_t word = block_at(5);
	struct scan scan;

	memcpy(byte_at(image, at), &word, sizeof(word));
	assert_int_equal(scan_init(&scan, &image->snapshot, NULL, NULL), 0);
	assert_true(scan.heap.is_whole);
	assert_int_equal(class_of(&scan, 5), REACH_POSSIBLE);
	assert_int_equal(scan.nr_hidden, 1);
	scan_deinit(&scan);
}

static void a_second_look_sees_words_across_pieces(void **state)
{
	const uint64_t border = HEAP_IMAGE_HEAP + HEAP_PIECE_BYTES, holder = border - 16;

	for (unsigned shift = 1; shift < 8; shift++) {
		struct heap_image image;

		init_lists(&image);
		/* One held chunk lies across the border. */
		heap_image_set(&image, holder - 16 - CHUNK + 8, 2 * CHUNK | 1);
		heap_image_set(&image, HEAP_IMAGE_DATA + 64, holder - CHUNK);
		assert_seen_at(&image, border - shift);
		heap_image_deinit(&image);
		init_lists(&image);
		assert_seen_at(&image, HEAP_IMAGE_DATA + ROOT_PIECE_BYTES - shift);
		heap_image_deinit(&image);
	}
}

/* All but the first have a link with a tag only: a list like those of lock-free programs. */
static void a_second_look_is_for_any_number_of_blocks(void **state)
{
	const uint64_t chunk = 32, nr = 1100000, tag = 7ull << 48;
	struct heap_image image;
	struct scan scan;

	heap_image_init_large(&image, (nr + 8) * chunk & ~4095ull, chunk);
	heap_image_set(&image, HEAP_IMAGE_DATA + 64, (HEAP_IMAGE_HEAP + 16) | tag);
	for (uint64_t at = HEAP_IMAGE_HEAP + 16; at + chunk < image.at; at += chunk)
		heap_image_set(&image, at, (at + chunk) | tag);
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
	assert_true(scan.heap.is_whole);
	assert_true(scan.heap.map.nr_blocks > 1 << 20);
	assert_int_equal(scan.totals[REACH_POSSIBLE].nr, scan.heap.map.nr_blocks);
	assert_int_equal(scan.nr_hidden, scan.heap.map.nr_blocks);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

/* Large roots are many pieces, and no byte of them is left out. */
static void pieces_cover_all_places(void **state)
{
	struct heap_image image;
	struct thread_stacks stacks;
	struct roots roots;
	struct heap heap;
	struct place_cursor cursor;
	struct place place;
	uint64_t root_bytes = 0, heap_bytes = 0, all = 0;
	unsigned nr_pieces = 0;

	init_lists(&image);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_int_equal(thread_stacks_find(&stacks, &image.snapshot), 0);
	assert_int_equal(roots_init(&roots, &heap, &stacks), 0);
	for (size_t i = 0; i < roots.nr; i++)
		if (roots.ranges[i].kind != ROOT_RED_ZONE)
			all += roots.ranges[i].size_bytes;
	place_cursor_init(&cursor, &heap, &roots, PLACE_ALL);
	while (place_cursor_next(&cursor, &place)) {
		nr_pieces += !place.range;
		*(place.range ? &root_bytes : &heap_bytes) += place.end - place.start;
	}
	place_cursor_deinit(&cursor);
	assert_int_equal(root_bytes, all);
	assert_int_equal(nr_pieces, HEAP_BYTES / HEAP_PIECE_BYTES);
	/* All but the first begin 7 bytes before. */
	assert_int_equal(heap_bytes, HEAP_BYTES + (nr_pieces - 1) * 7);
	roots_deinit(&roots);
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

static void work_is_halved(void **state)
{
	struct work_queue queue;
	struct work rich, poor;
	uint32_t block;

	work_queue_init(&queue);
	work_queue_enter(&queue);
	work_queue_enter(&queue);
	assert_int_equal(work_init(&rich), 0);
	assert_int_equal(work_init(&poor), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(work_push(&rich, i), 0);
	assert_false(work_queue_is_hungry(&queue));
	work_give(&rich, &queue);
	assert_int_equal(rich.nr, 3);
	assert_true(work_wait(&poor, &queue));
	assert_int_equal(poor.nr, 2);
	/* The oldest. */
	assert_true(work_pop(&poor, &block) && block == 1);
	assert_true(work_pop(&poor, &block) && block == 0);
	assert_false(work_pop(&poor, &block));
	while (work_pop(&rich, &block))
		;
	work_give(&rich, &queue);
	work_queue_stop(&queue);
	assert_false(work_wait(&poor, &queue));
	work_deinit(&rich);
	work_deinit(&poor);
	work_queue_deinit(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_followed_to_their_ends),
		cmocka_unit_test(a_second_look_sees_words_across_pieces),
		cmocka_unit_test(a_second_look_is_for_any_number_of_blocks),
		cmocka_unit_test(pieces_cover_all_places),
		cmocka_unit_test(work_is_halved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
