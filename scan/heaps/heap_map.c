/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/heap_map.h"

#include "common/partition_point.h"
#include "scan/heaps/huge_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int heap_map_add_segment(struct heap_map *map, const struct heap_segment *segment)
{
	size_t nr = map->nr_segments;

	if ((nr & (nr - 1)) == 0) {
		struct heap_segment *grown =
			reallocarray(map->segments, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		map->segments = grown;
	}
	map->segments[map->nr_segments++] = *segment;
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct heap_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int heap_map_allocate(struct heap_map *map)
{
	uint64_t unit = 0, end = 0;

	if (map->nr_segments)
		qsort(map->segments, map->nr_segments, sizeof(*map->segments), compare_segments);
	for (size_t i = 0; i < map->nr_segments; i++) {
		struct heap_segment *segment = &map->segments[i];

		if (segment->start < end || segment->start >= segment->end ||
		    (segment->start | segment->end) % HEAP_UNIT)
			return -EEXIST;
		end = segment->end;
		segment->first_unit = unit;
		unit += segment->mapped_block ? 3 : (segment->end - segment->start) / HEAP_UNIT;
		unit = (unit + 63) & ~63ull;
	}
	if (unit >= HEAP_NONE)
		return -E2BIG;
	map->lowest = map->nr_segments ? map->segments[0].start : UINT64_MAX;
	map->highest = end;
	map->nr_units = unit;
	for (int level = 0; level < HEAP_LEVELS; level++) {
		unit = (unit + 63) / 64;
		map->nr_words[level] = unit;
		map->levels[level] = calloc(unit + 8, sizeof(uint64_t));
		if (!map->levels[level])
			return -ENOMEM;
	}
	return 0;
}

int heap_map_number(struct heap_map *map)
{
	const uint64_t *words = map->levels[0];
	size_t nr_words = map->nr_words[0];
	uint32_t nr = 0;

	map->ranks = calloc(nr_words + 1, sizeof(*map->ranks));
	if (!map->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < nr_words; i++) {
		map->ranks[i] = nr;
		nr += heap_map_count_bits(words[i]);
	}
	map->blocks = huge_array_alloc(nr + 1ull, sizeof(*map->blocks), 0);
	if (!map->blocks)
		return -ENOMEM;
	map->nr_blocks = 0;
	for (size_t i = 0; i < nr_words; i++)
		for (uint64_t word = words[i]; word; word &= word - 1)
			map->blocks[map->nr_blocks++] =
				(uint32_t)(i * 64 + (unsigned)__builtin_ctzll(word));
	for (int level = 1; level < HEAP_LEVELS; level++)
		for (size_t i = 0; i < map->nr_words[level - 1]; i++)
			if (map->levels[level - 1][i])
				map->levels[level][i / 64] |= 1ull << (i % 64);
	return 0;
}

void heap_map_deinit(struct heap_map *map)
{
	for (int level = 0; level < HEAP_LEVELS; level++)
		free(map->levels[level]);
	free(map->segments);
	free(map->ranks);
	free(map->blocks);
	*map = (struct heap_map){0};
}

const struct heap_segment *heap_map_segment(const struct heap_map *map, uint64_t address)
{
	size_t first;

	if (address < map->lowest || address >= map->highest)
		return NULL;
	first = partition_point(map->nr_segments, i, map->segments[i].end <= address);
	return first < map->nr_segments && map->segments[first].start <= address
		       ? &map->segments[first]
		       : NULL;
}

/* The last bit that is set at or before @bit; false: none. */
static bool find_before(const struct heap_map *map, int level, uint64_t bit, uint64_t *ret)
{
	const uint64_t *words = map->levels[level];
	uint64_t at = bit / 64, word = words[at] & (UINT64_MAX >> (63 - bit % 64));

	if (!word) {
		if (at == 0)
			return false;
		if (level + 1 < HEAP_LEVELS) {
			if (!find_before(map, level + 1, at - 1, &at))
				return false;
		} else {
			do {
				if (at == 0)
					return false;
			} while (!words[--at]);
		}
		word = words[at];
	}
	*ret = at * 64 + 63 - (unsigned)__builtin_clzll(word);
	return true;
}

uint32_t heap_map_find(const struct heap_map *map, const struct heap_segment *segment,
		       uint64_t address)
{
	uint64_t unit;

	if (!find_before(map, 0, heap_map_unit(segment, address), &unit) ||
	    unit < segment->first_unit)
		return HEAP_NONE;
	return heap_map_block_at(map, unit);
}

static inline uint64_t address_of(const struct heap_segment *segment, uint64_t unit)
{
	return segment->mapped_block ? segment->mapped_block
				     : segment->start + (unit - segment->first_unit) * HEAP_UNIT;
}

/* True if the segment has the unit for certain. */
static inline bool has_unit(const struct heap_segment *segment, uint64_t unit)
{
	return !segment->mapped_block &&
	       unit - segment->first_unit < (segment->end - segment->start) / HEAP_UNIT;
}

const struct heap_segment *heap_map_block(const struct heap_map *map, uint32_t nr,
					  uint64_t *ret_address)
{
	uint64_t unit = map->blocks[nr];
	size_t low = 0, high = map->nr_segments;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (map->segments[middle].first_unit <= unit)
			low = middle;
		else
			high = middle;
	}
	*ret_address = address_of(&map->segments[low], unit);
	return &map->segments[low];
}

const struct heap_segment *heap_map_block_near(const struct heap_map *map, uint32_t nr,
					       const struct heap_segment **last,
					       uint64_t *ret_address)
{
	if (*last && has_unit(*last, map->blocks[nr]))
		*ret_address = address_of(*last, map->blocks[nr]);
	else
		*last = heap_map_block(map, nr, ret_address);
	return *last;
}
