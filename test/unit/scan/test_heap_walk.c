/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which blocks a made-up heap has; and that one that a thread is just changing is doubted. */
#include "scan/heaps/heap_read.h"
#include "scan/core/core_file.h"
#include "test/support/heap_image.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static bool is_used(const struct heap *heap, uint64_t block)
{
	uint64_t offset;

	return heap_find_block(heap, block, &offset) != HEAP_NONE && offset == 0;
}

static const struct chunk_count *counts(const struct heap *heap)
{
	assert_int_equal(heap->nr_arenas, 1);
	return heap->arenas[0].counts;
}

static void used_and_free_chunks_are_told_apart(void **state)
{
	struct heap_image image;
	uint64_t first, free_one, last, offset;
	struct heap heap;

	heap_image_init(&image);
	first = heap_image_add(&image, 24);
	free_one = heap_image_add_free(&image, 104);
	last = heap_image_add(&image, 200);
	heap_image_end(&image);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_true(heap.is_whole);
	assert_int_equal(heap.map.nr_blocks, 2);
	assert_true(is_used(&heap, first) && is_used(&heap, last) && !is_used(&heap, free_one));
	assert_int_equal(heap_block_bytes(&heap, 1), 200);
	assert_int_equal(heap_find_block(&heap, last + 199, &offset), 1);
	assert_int_equal(heap_find_block(&heap, last + 200, &offset), HEAP_NONE);
	assert_int_equal(counts(&heap)[CHUNK_BIN].bytes, 112);
	assert_int_equal(counts(&heap)[CHUNK_TOP].nr, 1);
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

static void free_lists_are_taken_out(void **state)
{
	struct heap_image image;
	uint64_t fast[3], cached[2], cache;
	struct heap heap;

	heap_image_init(&image);
	for (int i = 0; i < 3; i++)
		fast[i] = heap_image_add(&image, 24);
	cache = heap_image_add(&image, 0x288);
	for (int i = 0; i < 2; i++)
		cached[i] = heap_image_add(&image, 40);
	heap_image_end(&image);
	heap_image_set(&image, fast[0], heap_image_link(fast[0], fast[2], 16));
	heap_image_set(&image, fast[2], heap_image_link(fast[2], 0, 16));
	heap_image_set_fastbin(&image, fast[0]);
	/* struct tcache_perthread_struct: 64 numbers of 16 bits, then 64 heads. */
	heap_image_set(&image, cache, 2 << 16);
	heap_image_set(&image, cache + 128 + 8, cached[1]);
	heap_image_set(&image, cached[1], heap_image_link(cached[1], cached[0], 0));
	heap_image_set(&image, cached[0], heap_image_link(cached[0], 0, 0));
	heap_image_set(&image, HEAP_IMAGE_VARIABLE(0x40), cache);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_true(heap.is_whole);
	assert_int_equal(heap.map.nr_blocks, 2);
	assert_true(is_used(&heap, fast[1]) && is_used(&heap, cache));
	assert_int_equal(counts(&heap)[CHUNK_FAST].nr, 2);
	assert_int_equal(counts(&heap)[CHUNK_CACHED].nr, 2);
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

/* A cache of 2.43, in a chunk of @chunk_bytes, with a block of a small size and one of 2000 bytes.
 */
static void a_cache_of_2_43_is_taken_out(uint64_t chunk_bytes)
{
	struct heap_image image;
	uint64_t cache, used, small, large;
	struct heap heap;

	heap_image_init_2_43(&image);
	cache = heap_image_add(&image, chunk_bytes - 8);
	small = heap_image_add(&image, 24);
	used = heap_image_add(&image, 24);
	large = heap_image_add(&image, 2000);
	heap_image_end(&image);
	/* struct tcache_perthread_struct: of 76 bins, how many more they take; then 76 heads. */
	for (int i = 0; i < 76 / 4; i++)
		heap_image_set(&image, cache + i * 8, 0x0010001000100010);
	heap_image_set(&image, cache, 0x001000100010000f);
	heap_image_set(&image, cache + 64 * 2, 0x00100010000f0010);
	heap_image_set(&image, cache + 152, small);
	heap_image_set(&image, cache + 152 + 65 * 8, large);
	heap_image_set(&image, small, heap_image_link(small, 0, 0));
	heap_image_set(&image, large, heap_image_link(large, 0, 0));
	heap_image_set(&image, HEAP_IMAGE_VARIABLE(0x60), cache);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_true(heap.is_whole);
	assert_int_equal(heap.map.nr_blocks, 2);
	assert_true(is_used(&heap, cache) && is_used(&heap, used));
	assert_int_equal(counts(&heap)[CHUNK_CACHED].nr, 2);
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

static void caches_of_2_43_are_taken_out(void **state)
{
	a_cache_of_2_43_is_taken_out(0x300); /* of __libc_malloc2() */
	a_cache_of_2_43_is_taken_out(0x310); /* of _int_malloc(), which adds a header again */
}

/* A page that is a chunk of @size bytes, @distance from its start, with flags in the first word. */
static uint64_t mapped_bytes(uint64_t distance, uint64_t first_flags, uint64_t size)
{
	const uint64_t page = HEAP_IMAGE_STACK + (1u << 20), chunk = page + distance;
	struct heap_image image;
	uint64_t bytes = 0, offset;
	struct heap heap;

	heap_image_init_2_43(&image);
	heap_image_add(&image, 24);
	heap_image_end(&image);
	heap_image_add_page(&image, page);
	heap_image_set(&image, page, first_flags);
	heap_image_set(&image, page + 8, 0xff0 | 2);
	heap_image_set(&image, chunk, distance | first_flags);
	heap_image_set(&image, chunk + 8, size | 2);
	heap_image_set(&image, HEAP_IMAGE_MAPPED, SCAN_PAGE_SIZE);
	heap_image_set(&image, HEAP_IMAGE_MAPPED + 8, SCAN_PAGE_SIZE);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	if (heap.is_whole) {
		assert_int_equal(heap.map.nr_blocks, 2);
		assert_int_equal(heap_find_block(&heap, chunk + 16, &offset), 1);
		assert_int_equal(offset, 0);
		bytes = heap_block_bytes(&heap, 1);
	}
	heap_deinit(&heap);
	heap_image_deinit(&image);
	return bytes;
}

/* mmap_set_chunk() of 2.43: the size leaves out 16 bytes, of which 8 belong to the block. */
static void mapped_chunks_of_2_43_are_smaller(void **state)
{
	assert_int_equal(mapped_bytes(0, 0, 0xff0), 0xfe8);
	assert_int_equal(mapped_bytes(0, 1, 0xff0), 0xfe8);    /* of huge pages */
	assert_int_equal(mapped_bytes(0x10, 0, 0xfe0), 0xfd8); /* aligned to 32 bytes */
	assert_int_equal(mapped_bytes(0xf0, 0, 0xf00), 0xef8);
	/* As in 2.42 */
	assert_int_equal(mapped_bytes(0, 0, 0x1000), 0);
}

/* Each way to leave out four pages makes the sum right; in 340,000 of them, the rest overlaps. */
static void chunks_that_may_be_wrong_in_many_ways_end(void **state)
{
	const uint64_t pages = HEAP_IMAGE_STACK + (1u << 20), nr = 128;
	struct heap_image image;
	struct heap heap;

	heap_image_init(&image);
	heap_image_add(&image, 24);
	heap_image_end(&image);
	heap_image_add_page(&image, pages);
	heap_image_enlarge(&image, pages, nr * SCAN_PAGE_SIZE);
	for (uint64_t i = 0; i < nr; i++)
		heap_image_set(&image, pages + i * SCAN_PAGE_SIZE + 8, SCAN_PAGE_SIZE | 2);
	/* The last three lie in the one before. */
	heap_image_set(&image, pages + (nr - 4) * SCAN_PAGE_SIZE + 8, 4 * SCAN_PAGE_SIZE | 2);
	/* The libc's number of chunks is before their bytes. */
	heap_image_set(&image, HEAP_IMAGE_MAPPED - 16, nr - 4);
	heap_image_set(&image, HEAP_IMAGE_MAPPED, (nr - 1) * SCAN_PAGE_SIZE);
	heap_image_set(&image, HEAP_IMAGE_MAPPED + 8, (nr - 1) * SCAN_PAGE_SIZE);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_false(heap.is_whole);
	assert_string_equal(heap.why_not, "its lists of chunks do not end");
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

/* The heap with one word changed: doubted, or not. */
static bool is_whole_with(uint64_t at, uint64_t word)
{
	struct heap_image image;
	struct heap heap;
	bool is_whole;

	heap_image_init(&image);
	heap_image_add(&image, 24);
	heap_image_add_free(&image, 40);
	heap_image_add(&image, 24);
	heap_image_end(&image);
	if (at)
		heap_image_set(&image, at, word);
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_non_null(heap.allocator);
	is_whole = heap.is_whole;
	assert_true(is_whole || heap.why_not[0]);
	heap_deinit(&heap);
	heap_image_deinit(&image);
	return is_whole;
}

static void a_heap_that_is_just_changed_is_doubted(void **state)
{
	/* Chunks of 32, 48 (free) and 32 bytes. */
	const uint64_t first = HEAP_IMAGE_HEAP, second = first + 32, third = second + 48;

	assert_true(is_whole_with(0, 0));
	/* No chunk has such sizes. */
	assert_false(is_whole_with(second + 8, 40 | 1));
	assert_false(is_whole_with(second + 8, 1));
	assert_false(is_whole_with(second + 8, 8192 | 1));
	assert_false(is_whole_with(second + 8, UINT64_MAX));
	/* The first chunk is free beside the second, or without its size behind. */
	assert_false(is_whole_with(second + 8, 48));
	assert_false(is_whole_with(third, 64));
	/* The chunk before the top is just cut off: the top has no header yet. */
	assert_true(is_whole_with(third, 48));
}

/* Its first bin is the first word of the mapping, or nearly so: nothing is before it. */
static void an_arena_may_begin_before_its_mapping(void **state)
{
	const uint64_t cut = HEAP_IMAGE_TOP - HEAP_IMAGE_LIBC;
	struct heap_image image;
	struct scan_region *region;
	struct heap heap;

	(void)state;
	heap_image_init(&image);
	heap_image_add(&image, 24);
	heap_image_end(&image);
	region = (struct scan_region *)snapshot_region(&image.snapshot, HEAP_IMAGE_LIBC);
	region->start += cut;
	region->runs[0].start += cut;
	region->bytes += cut;
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_non_null(heap.allocator);
	heap_deinit(&heap);
	region->bytes -= cut;
	heap_image_deinit(&image);
}

static void the_same_is_in_a_core_file(void **state)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	struct heap_image image;
	struct snapshot snapshot;
	struct heap heap;
	uint8_t *core;
	char path[64];
	size_t size;

	heap_image_init(&image);
	heap_image_add(&image, 24);
	heap_image_end(&image);
	image.snapshot.threads[0].registers.general[1].value = 77;
	core = heap_image_core(&image, &size);
	assert_int_equal(write(fd, core, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(core_file_read(&snapshot, path), 0);
	assert_int_equal(snapshot.nr_regions, image.snapshot.nr_regions);
	assert_int_equal(snapshot.threads[0].registers.sp, HEAP_IMAGE_SP);
	assert_int_equal(heap_read(&heap, &snapshot, NULL), 0);
	assert_true(heap.is_whole);
	assert_int_equal(heap.map.nr_blocks, 1);
	heap_deinit(&heap);
	snapshot_deinit(&snapshot);
	heap_image_deinit(&image);
	free(core);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(used_and_free_chunks_are_told_apart),
		cmocka_unit_test(free_lists_are_taken_out),
		cmocka_unit_test(caches_of_2_43_are_taken_out),
		cmocka_unit_test(mapped_chunks_of_2_43_are_smaller),
		cmocka_unit_test(chunks_that_may_be_wrong_in_many_ways_end),
		cmocka_unit_test(a_heap_that_is_just_changed_is_doubted),
		cmocka_unit_test(an_arena_may_begin_before_its_mapping),
		cmocka_unit_test(the_same_is_in_a_core_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
