/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/traced_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The allocators have sizes of 8 bytes, and then only multiples of 16 (jemalloc 5.3, size classes;
 * gperftools 2.10, AlignmentForSize(); mimalloc 2.0, MI_ALIGN2W; musl 1.2, mallocng's UNIT).
 */
#define SMALLEST_BYTES 9

static const char *name_allocator(const struct snapshot *snapshot)
{
	static const struct {
		const char *part, *name;
	} known[] = {
		{"jemalloc", "jemalloc"},
		{"tcmalloc", "tcmalloc"},
		{"mimalloc", "mimalloc"},
		{"ld-musl", "musl's malloc"},
	};

	for (size_t i = 0; i < snapshot->nr_regions; i++)
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (strstr(snapshot->regions[i].path, known[k].part))
				return known[k].name;
	return "another allocator";
}

static int compare_blocks(const void *a, const void *b)
{
	const struct traced_block *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Where the units of a block end; 0: nowhere. */
static uint64_t end_of(const struct traced_block *block)
{
	uint64_t size_bytes = block->size_bytes ? block->size_bytes : 1;

	if (block->address > UINT64_MAX - HEAP_UNIT - size_bytes)
		return 0;
	return (block->address + size_bytes + HEAP_UNIT - 1) & ~(uint64_t)(HEAP_UNIT - 1);
}

/* The copy of the block's units; NULL: it is not one, or was not copied as a whole. */
static const uint8_t *bytes_of(const struct snapshot *snapshot, const struct traced_block *block)
{
	if (block->address % HEAP_UNIT || block->size_bytes < SMALLEST_BYTES || !end_of(block))
		return NULL;
	return snapshot_bytes(snapshot, block->address, end_of(block) - block->address);
}

/* Keeps what can be blocks of the heap. */
static void choose_blocks(const struct heap *heap, struct traced_blocks *blocks)
{
	uint64_t end = 0;
	size_t nr = 0;

	qsort(blocks->blocks, blocks->nr, sizeof(*blocks->blocks), compare_blocks);
	for (size_t i = 0; i < blocks->nr; i++) {
		const struct traced_block block = blocks->blocks[i];
		bool overlaps =
			block.address < end ||
			(i + 1 < blocks->nr && end_of(&block) > blocks->blocks[i + 1].address);

		if (end_of(&block) > end)
			end = end_of(&block);
		if (!overlaps && bytes_of(heap->snapshot, &block))
			blocks->blocks[nr++] = block;
	}
	blocks->nr = nr;
}

/* One segment for neighbours without a gap. */
static int add_segments(struct heap *heap, const struct traced_blocks *blocks)
{
	struct heap_segment segment = {0};
	int err = 0;

	for (size_t i = 0; i < blocks->nr && !err; i++) {
		const struct traced_block *block = &blocks->blocks[i];
		const uint8_t *bytes = bytes_of(heap->snapshot, block);

		if (segment.bytes && segment.end == block->address &&
		    segment.bytes + (segment.end - segment.start) == bytes) {
			segment.end = end_of(block);
			continue;
		}
		if (segment.bytes)
			err = heap_map_add_segment(&heap->map, &segment);
		segment = (struct heap_segment){
			.start = block->address,
			.end = end_of(block),
			.bytes = bytes,
		};
	}
	return !err && segment.bytes ? heap_map_add_segment(&heap->map, &segment) : err;
}

int traced_heap_read(struct heap *heap, struct traced_blocks *blocks)
{
	int err;

	choose_blocks(heap, blocks);
	heap->sizes = calloc(blocks->nr + 1, sizeof(*heap->sizes));
	if (!heap->sizes)
		return -ENOMEM;
	heap->allocator = name_allocator(heap->snapshot);
	heap->is_traced = heap->is_whole = true;
	err = add_segments(heap, blocks);
	if (!err)
		err = heap_map_allocate(&heap->map);
	for (size_t i = 0; i < blocks->nr && !err; i++) {
		const struct heap_segment *segment =
			heap_map_segment(&heap->map, blocks->blocks[i].address);

		heap_map_set(&heap->map, heap_map_unit(segment, blocks->blocks[i].address));
		heap->sizes[i] = blocks->blocks[i].size_bytes;
	}
	return err;
}
