/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mappings of one address space that a recording shows being made: regions that do not overlap,
 * each with the operation that mapped it. Earlier mappings are not known, and unmapping one is no
 * error. Ranges may be any addresses; the caller rounds them to pages.
 *
 * Removing a range cuts the regions at its ends. The rests are regions of the same origin.
 */
#ifndef LEAKTOOLS_PARSER_REGION_MAP_H
#define LEAKTOOLS_PARSER_REGION_MAP_H

#include "parser/heap/heap_block.h"
#include "parser/heap/shared_pages.h"

struct region {
	uint64_t start, end; /* [start, end), not empty */
	bool is_own;	     /* the allocator's, the loader's or the C library's: not counted */
	bool inherited;	     /* copied by fork(): the parent's mapping */
	struct heap_op mapped;
};

/* A region as a held block. */
struct heap_block region_block(const struct region *region);

struct region_map;

/* A region from which [@start, @end) was removed. There may be rests on both sides. */
struct region_cut {
	struct region whole;
	uint64_t start, end;
};

/* The parts that an operation removed, in order of address. Zero it before use. */
struct region_cuts {
	struct region_cut *list;
	size_t nr, capacity;
};

void region_cuts_deinit(struct region_cuts *cuts);

/* @memory counts its memory; copies share it. NULL: out of memory. */
struct region_map *region_map_create(struct shared_memory *memory);
/*
 * A copy for a forked child, with every region inherited. Unchanged parts are shared. NULL: out of
 * memory.
 */
struct region_map *region_map_copy(const struct region_map *map);
void region_map_destroy(struct region_map *map);

/* Adds a region in an empty range. Returns 0, -EEXIST or -ENOMEM. */
int region_map_add(struct region_map *map, const struct region *region);

/*
 * Removes the mappings in [@start, @end) and appends them to @cuts. Returns 0 or -ENOMEM, after
 * which a part may be removed.
 */
int region_map_remove(struct region_map *map, uint64_t start, uint64_t end,
		      struct region_cuts *cuts);

/* The result of undoing a cut: the parts are one region again. */
struct region_join {
	struct region
		parts[3]; /* the restored part first, then its neighbours of the same origin */
	int nr_parts;	  /* 0: the range is mapped again, and nothing was done */
	struct region whole;
};

/* Restores a removed part. Returns 0 or -ENOMEM. */
int region_map_put_back(struct region_map *map, const struct region_cut *cut,
			struct region_join *ret);

/*
 * Forgets the regions that a dead process inherited: they are its parent's. Returns 0 or -ENOMEM.
 */
int region_map_bury(struct region_map *map);

/* The map's memory, including parts shared with others. */
size_t region_map_size_bytes(const struct region_map *map);
size_t region_map_nr(const struct region_map *map);

/* Calls @visit for each region that was not inherited, in order of address. */
void region_map_for_each_own(const struct region_map *map,
			     void (*visit)(void *context, const struct region *region),
			     void *context);

/* The program break (brk(2)); 0: not known. The caller maintains it. It is copied with the map. */
uint64_t region_map_break(const struct region_map *map);
void region_map_set_break(struct region_map *map, uint64_t address);

#endif
