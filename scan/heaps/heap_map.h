/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that are in use: a bit for each 16 bytes of the heap's segments, the unit. From it a
 * block's number, its address, and the block that holds an address are a few steps away. A segment
 * that is one block with a mapping of its own, which may claim terabytes, has three units: before
 * the block, where it begins, and the rest. An allocator fills it in (heap.h).
 */
#ifndef LEAKTOOLS_SCAN_HEAP_MAP_H
#define LEAKTOOLS_SCAN_HEAP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_UNIT   16u
#define HEAP_NONE   UINT32_MAX
#define HEAP_LEVELS 3

/* A part of the address space that holds chunks. */
struct heap_segment {
	uint64_t start, end;   /* multiples of HEAP_UNIT */
	uint64_t first_unit;   /* the number of its first unit, a multiple of 64 */
	const uint8_t *bytes;  /* the copy of @start and what follows */
	unsigned arena;	       /* index in struct heap */
	uint64_t mapped_block; /* of a chunk with a mapping of its own; else 0 */
};

struct heap_map {
	struct heap_segment *segments; /* by start; they do not overlap */
	size_t nr_segments;
	uint64_t lowest, highest; /* of all segments */
	uint64_t nr_units;
	uint64_t *levels[HEAP_LEVELS]; /* [0]: blocks; [n]: the words of [n - 1] that are not 0 */
	size_t nr_words[HEAP_LEVELS];
	uint32_t *ranks;  /* blocks before each word of [0] */
	uint32_t *blocks; /* the units where blocks begin, in order */
	uint32_t nr_blocks;
};

/* Appends a segment; the map is not usable before heap_map_allocate(). Returns 0 or -ENOMEM. */
int heap_map_add_segment(struct heap_map *map, const struct heap_segment *segment);

/*
 * Sorts the segments and allocates the bits. Returns 0; -EEXIST if segments overlap; -E2BIG; or
 * -ENOMEM.
 */
int heap_map_allocate(struct heap_map *map);

/* Numbers the blocks, when all of them are set. Returns 0 or -ENOMEM. */
int heap_map_number(struct heap_map *map);
void heap_map_deinit(struct heap_map *map);

/* The segment that holds @address, or NULL. */
const struct heap_segment *heap_map_segment(const struct heap_map *map, uint64_t address);

/* The same, and *@last, which is the segment of an address before, is tried first. */
static inline const struct heap_segment *heap_map_segment_near(const struct heap_map *map,
							       uint64_t address,
							       const struct heap_segment **last)
{
	if (!*last || address - (*last)->start >= (*last)->end - (*last)->start) {
		const struct heap_segment *segment = heap_map_segment(map, address);

		if (!segment)
			return NULL;
		*last = segment;
	}
	return *last;
}

static inline uint64_t heap_map_unit(const struct heap_segment *segment, uint64_t address)
{
	if (segment->mapped_block)
		return segment->first_unit + (address >= segment->mapped_block) +
		       (address > segment->mapped_block);
	return segment->first_unit + (address - segment->start) / HEAP_UNIT;
}

static inline bool heap_map_is_set(const struct heap_map *map, uint64_t unit)
{
	return map->levels[0][unit / 64] >> (unit % 64) & 1;
}

static inline void heap_map_set(struct heap_map *map, uint64_t unit)
{
	map->levels[0][unit / 64] |= 1ull << (unit % 64);
}

static inline void heap_map_clear(struct heap_map *map, uint64_t unit)
{
	map->levels[0][unit / 64] &= ~(1ull << (unit % 64));
}

/* How many bits are set. The oldest x86-64 has no instruction for it, so gcc calls a function. */
static inline uint32_t heap_map_count_bits(uint64_t word)
{
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	return (uint32_t)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}

/* The number of the block that begins at @unit, which is set. */
static inline uint32_t heap_map_block_at(const struct heap_map *map, uint64_t unit)
{
	uint64_t word = unit / 64, before = map->levels[0][word] & ((1ull << (unit % 64)) - 1);

	return map->ranks[word] + heap_map_count_bits(before);
}

/*
 * The block that begins at @address; else the one that begins before it in its segment, which may
 * end before it. HEAP_NONE: none.
 */
uint32_t heap_map_find(const struct heap_map *map, const struct heap_segment *segment,
		       uint64_t address);

/* The segment of block @nr, and its address. */
const struct heap_segment *heap_map_block(const struct heap_map *map, uint32_t nr,
					  uint64_t *ret_address);

/* The same, and *@last, which is the segment of a block before, is tried first. */
const struct heap_segment *heap_map_block_near(const struct heap_map *map, uint32_t nr,
					       const struct heap_segment **last,
					       uint64_t *ret_address);

#endif
