/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mappings of one address space, as far as a recording shows them being made: regions that do
 * not overlap, each with whoever mapped it. What was mapped before is not known, and no error to
 * unmap. Ranges are any addresses; who rounds to pages is the caller.
 *
 * Taking a range out cuts the regions at its ends: what is left of them are regions of their own,
 * of the same origin.
 */
#ifndef LEAKTOOLS_PARSER_REGION_MAP_H
#define LEAKTOOLS_PARSER_REGION_MAP_H

#include "parser/heap/heap_block.h"
#include "parser/heap/shared_pages.h"

struct region {
	uint64_t start, end; /* [start, end), not empty */
	bool is_own;	/* the allocator's, the loader's or the C library's: it counts for none */
	bool inherited; /* came with fork(): the parent's mapping */
	struct heap_op mapped;
};

/* A region as a held block. */
struct heap_block region_block(const struct region *region);

struct region_map;

/* A region of which the part from @start to @end was taken: all of it, or with a rest at either
 * side. */
struct region_cut {
	struct region whole;
	uint64_t start, end;
};

/* What was taken out of a map at a time, in the order of addresses. Zeroed, it is empty. */
struct region_cuts {
	struct region_cut *list;
	size_t nr, capacity;
};

void region_cuts_deinit(struct region_cuts *cuts);

/* @memory counts what it takes; copies share it. NULL: out of memory. */
struct region_map *region_map_create(struct shared_memory *memory);
/*
 * A copy for a forked child, every region marked inherited; NULL: out of memory. What neither
 * changes, both have in one place.
 */
struct region_map *region_map_copy(const struct region_map *map);
void region_map_destroy(struct region_map *map);

/* Adds a region where there is none: its range was taken before. Returns 0 or -ENOMEM. */
int region_map_add(struct region_map *map, const struct region *region);

/*
 * Takes what lies in [@start, @end) out of the map and appends it to @cuts. Returns 0 or -ENOMEM,
 * after which the map may have lost a part of it.
 */
int region_map_remove(struct region_map *map, uint64_t start, uint64_t end,
		      struct region_cuts *cuts);

/* What became of a cut that was undone: the parts are one region again. */
struct region_join {
	struct region
		parts[3]; /* what was put back first, then those beside it of the same origin */
	int nr_parts;	  /* 0: something has been mapped there since, and nothing is done */
	struct region whole;
};

/* Puts back what was taken. Returns 0 or -ENOMEM. */
int region_map_put_back(struct region_map *map, const struct region_cut *cut,
			struct region_join *ret);

/* Forgets the regions that a dead process inherited: they are its parent's. */
int region_map_bury(struct region_map *map);

/* What the map takes by itself, and with what it has in common with others. */
size_t region_map_size_bytes(const struct region_map *map);
size_t region_map_nr(const struct region_map *map);

/* Calls @visit for each region that was not inherited, in the order of addresses. */
void region_map_for_each_own(const struct region_map *map,
			     void (*visit)(void *context, const struct region *region),
			     void *context);

/*
 * The end of the break (brk(2)) where it is known, else 0: the caller's to keep; copied with the
 * map.
 */
uint64_t region_map_break(const struct region_map *map);
void region_map_set_break(struct region_map *map, uint64_t address);

#endif
