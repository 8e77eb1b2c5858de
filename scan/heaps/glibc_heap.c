/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_heap.h"

#include "scan/heaps/glibc_arenas.h"
#include "scan/heaps/glibc_free_lists.h"
#include "scan/heaps/glibc_mapped.h"
#include "scan/heaps/glibc_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The smallest chunks have 32 bytes, and each is looked at four times at most. */
#define BYTES_PER_STEP 4
#define MIN_STEPS      (1u << 24)

static uint64_t block_bytes(const struct heap_segment *segment, const uint8_t *bytes)
{
	uint64_t size = load_word(bytes - 8) & GLIBC_SIZE_MASK;

	/* A chunk in use also has the first word of the next chunk's header. */
	return size - (segment->mapped_block ? GLIBC_HEADER : 8);
}

/* Since 2.43, memsize() is the same for all chunks: what lies behind a mapped one is left out. */
static uint64_t block_bytes_without_fastbins(const struct heap_segment *segment,
					     const uint8_t *bytes)
{
	return (load_word(bytes - 8) & GLIBC_SIZE_MASK) - 8;
}

static int add_arenas(struct glibc *glibc)
{
	struct heap *heap = glibc->heap;

	heap->arenas = calloc(glibc->nr_arenas, sizeof(*heap->arenas));
	if (!heap->arenas)
		return -ENOMEM;
	heap->nr_arenas = glibc->nr_arenas;
	for (size_t i = 0; i < glibc->nr_arenas; i++) {
		heap->arenas[i].address = glibc->arenas[i].address;
		heap->arenas[i].system_bytes = glibc->arenas[i].system_bytes;
	}
	return 0;
}

static int add_segments(struct glibc *glibc)
{
	int err = 0;

	for (size_t i = 0; i < glibc->nr_parts && !err; i++) {
		const struct glibc_part *part = &glibc->parts[i];
		uint64_t end = part->end & ~(uint64_t)(HEAP_UNIT - 1);

		err = heap_map_add_segment(
			&glibc->heap->map,
			&(struct heap_segment){
				.start = part->start,
				.end = end,
				.bytes = snapshot_bytes(glibc->snapshot, part->start,
							end - part->start),
				.arena = part->arena,
			});
	}
	return err;
}

/* What the walks have found. Each part is a segment, and both have a bit for each unit. */
static void set_blocks(struct glibc *glibc)
{
	struct heap *heap = glibc->heap;

	for (size_t i = 0; i < glibc->nr_parts; i++) {
		const struct glibc_part *part = &glibc->parts[i];
		const struct heap_segment *segment = heap_map_segment(&heap->map, part->start);
		struct chunk_count *counts = heap->arenas[part->arena].counts;
		uint64_t words =
			(segment->end - segment->start + 64 * HEAP_UNIT - 1) / 64 / HEAP_UNIT;

		if (part->used)
			memcpy(heap->map.levels[0] + segment->first_unit / 64, part->used,
			       words * sizeof(*part->used));
		for (int state = 0; state < CHUNK_NR_STATES; state++) {
			counts[state].nr += part->counts[state].nr;
			counts[state].bytes += part->counts[state].bytes;
		}
	}
}

static void set_mapped(struct heap *heap)
{
	for (size_t i = 0; i < heap->map.nr_segments; i++) {
		const struct heap_segment *segment = &heap->map.segments[i];

		if (!segment->mapped_block)
			continue;
		heap_map_set(&heap->map, heap_map_unit(segment, segment->mapped_block));
		heap->arenas[0].counts[CHUNK_MAPPED].nr++;
		heap->arenas[0].counts[CHUNK_MAPPED].bytes += segment->end - segment->start;
	}
}

static void check_coverage(struct glibc *glibc)
{
	const struct heap *heap = glibc->heap;

	for (size_t i = 0; i < heap->nr_arenas; i++) {
		const struct heap_arena *arena = &heap->arenas[i];

		if (arena->walked_bytes != arena->system_bytes)
			glibc_doubt(glibc,
				    "the arena at 0x%" PRIx64 " has %" PRIu64
				    " bytes, and chunks of %" PRIu64 " were found",
				    arena->address, arena->system_bytes, arena->walked_bytes);
	}
}

static int read_heap(struct glibc *glibc)
{
	struct heap *heap = glibc->heap;
	int err = glibc_arenas_find(glibc);

	if (err || !glibc->nr_arenas)
		return err ? err : heap_map_allocate(&heap->map);
	heap->allocator = "glibc malloc";
	heap->block_bytes = glibc_has_fastbins(glibc) ? block_bytes : block_bytes_without_fastbins;
	heap->is_whole = true;
	err = add_arenas(glibc);
	if (!err)
		err = glibc_find_parts(glibc);
	if (!err)
		err = glibc_find_mapped(glibc);
	if (!err)
		err = add_segments(glibc);
	if (!err)
		err = heap_map_allocate(&heap->map);
	if (err)
		return err;
	set_blocks(glibc);
	set_mapped(heap);
	err = glibc_take_free_chunks(glibc);
	check_coverage(glibc);
	return err;
}

int glibc_heap_read(struct heap *heap)
{
	struct glibc glibc = {
		.heap = heap,
		.snapshot = heap->snapshot,
		.steps_left = MIN_STEPS + heap->snapshot->copied_bytes / BYTES_PER_STEP,
	};
	int err;

	for (size_t i = 0; i < heap->snapshot->nr_regions; i++)
		glibc.bytes_left +=
			heap->snapshot->regions[i].end - heap->snapshot->regions[i].start;
	err = read_heap(&glibc);
	for (size_t i = 0; i < glibc.nr_parts; i++)
		free(glibc.parts[i].used);
	free(glibc.arenas);
	free(glibc.parts);
	return err;
}
