/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/heap.h"

#include <errno.h>
#include <stdlib.h>

/* Less is looked through faster than its pages are looked up. */
#define MIN_SPARSE_BYTES (1u << 20)

void heap_deinit(struct heap *heap)
{
	heap_map_deinit(&heap->map);
	free(heap->arenas);
	free(heap->own);
	free(heap->sizes);
	scan_regions_free(heap->joined, heap->nr_joined);
	*heap = (struct heap){0};
}

void heap_sum_chunks(const struct heap *heap, struct chunk_count ret[static CHUNK_NR_STATES])
{
	memset(ret, 0, CHUNK_NR_STATES * sizeof(*ret));
	for (size_t i = 0; i < heap->nr_arenas; i++)
		for (int state = 0; state < CHUNK_NR_STATES; state++) {
			ret[state].nr += heap->arenas[i].counts[state].nr;
			ret[state].bytes += heap->arenas[i].counts[state].bytes;
		}
}

uint64_t heap_retained_bytes(const struct chunk_count chunks[static CHUNK_NR_STATES])
{
	uint64_t bytes = 0;

	for (int state = CHUNK_BIN; state <= CHUNK_TOP; state++)
		bytes += chunks[state].bytes;
	return bytes;
}

void heap_block_view(const struct heap *heap, uint32_t nr, struct heap_block_view *ret)
{
	uint64_t address;
	const struct heap_segment *segment = heap_map_block(&heap->map, nr, &address);

	heap_block_view_at(heap, nr, segment, address, ret);
}

uint64_t heap_block_bytes(const struct heap *heap, uint32_t nr)
{
	struct heap_block_view view;

	heap_block_view(heap, nr, &view);
	return view.size_bytes;
}

bool heap_block_next(const struct heap *heap, const struct heap_block_view *view, uint64_t *at,
		     uint64_t *ret_end)
{
	uint64_t address = view->address + *at;

	*ret_end = view->size_bytes;
	if (view->size_bytes < MIN_SPARSE_BYTES)
		return *at < view->size_bytes;
	if (!snapshot_next_copied(heap->snapshot, &address, view->address + view->size_bytes,
				  ret_end))
		return false;
	*at = address - view->address;
	*ret_end -= view->address;
	return true;
}

uint32_t heap_find_block(const struct heap *heap, uint64_t address, uint64_t *ret_offset)
{
	const struct heap_segment *segment = heap_map_segment(&heap->map, address);
	struct heap_block_view view;
	uint32_t nr;

	if (!segment)
		return HEAP_NONE;
	nr = heap_map_find(&heap->map, segment, address);
	if (nr == HEAP_NONE)
		return HEAP_NONE;
	heap_block_view(heap, nr, &view);
	/* A block of no bytes is found by its start only. */
	if (address != view.address && address - view.address >= view.size_bytes)
		return HEAP_NONE;
	*ret_offset = address - view.address;
	return nr;
}

int heap_add_own(struct heap *heap, uint64_t start, uint64_t end)
{
	size_t nr = heap->nr_own;

	if ((nr & (nr - 1)) == 0) {
		struct heap_range *grown = reallocarray(heap->own, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		heap->own = grown;
	}
	heap->own[heap->nr_own++] = (struct heap_range){start, end};
	return 0;
}
