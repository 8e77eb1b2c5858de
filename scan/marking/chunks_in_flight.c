/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/chunks_in_flight.h"

#include "scan/heaps/glibc.h"

uint32_t chunk_block_at(const struct heap *heap, uint64_t address)
{
	const struct heap_segment *segment =
		address % HEAP_UNIT ? NULL : heap_map_segment(&heap->map, address);
	uint64_t unit = segment ? heap_map_unit(segment, address) : 0;

	return segment && heap_map_is_set(&heap->map, unit) ? heap_map_block_at(&heap->map, unit)
							    : HEAP_NONE;
}

uint32_t chunk_next_in_list(const struct heap *heap, uint32_t block)
{
	struct heap_block_view view;
	uint64_t word;

	heap_block_view(heap, block, &view);
	if (view.segment->mapped_block)
		return HEAP_NONE;
	word = load_word(view.bytes);
	/* PROTECT_PTR(), since 2.32. Fastbins link chunks, caches link blocks. */
	const uint64_t links[] = {(word ^ view.address >> 12) + GLIBC_HEADER,
				  word ^ view.address >> 12, word + GLIBC_HEADER};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		uint32_t next = chunk_block_at(heap, links[i]);

		if (next != HEAP_NONE && heap_block_bytes(heap, next) == view.size_bytes)
			return next;
	}
	return HEAP_NONE;
}

uint32_t chunk_behind_free(const struct heap *heap, uint64_t address)
{
	const struct heap_segment *segment = heap_map_segment(&heap->map, address);
	const uint8_t *next;
	uint64_t size;

	if (!segment || address % HEAP_UNIT || segment->end - address < 4 * GLIBC_HEADER)
		return HEAP_NONE;
	size = load_word(segment->bytes + (address - segment->start) + 8) & GLIBC_SIZE_MASK;
	if (!size || size > segment->end - address - 2 * GLIBC_HEADER)
		return HEAP_NONE;
	next = segment->bytes + (address - segment->start) + size;
	return load_word(next) == size && !(load_word(next + 8) & GLIBC_PREV_IN_USE)
		       ? chunk_block_at(heap, address + size + GLIBC_HEADER)
		       : HEAP_NONE;
}
