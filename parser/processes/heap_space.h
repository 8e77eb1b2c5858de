/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address spaces: which processes use the same heap, and what becomes of a heap that none uses any
 * more. A space is shared (vfork: one more user), copied (fork) or left (exec, exit, a pid used
 * anew).
 *
 * A fork copies lazily: the child's space names its source until either of them is about to change.
 * Most children exec before that, and their copy is never made. So a heap is reached through
 * heap_space_open() only, which makes the copies that are due. A copy that is made takes room for
 * what is changed in it or in its source (heap_copy()).
 *
 * What all copies take together is limited. Beyond that, children forget what they inherited, the
 * oldest first, and are counted. No leak is missed for that: what a child inherited is its parent's
 * to leak. But a free of it in the child is one of an unknown block then.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_SPACE_H
#define LEAKTOOLS_PARSER_HEAP_SPACE_H

#include "parser/heap/heap_model.h"
#include "parser/heap/region_map.h"

struct heap_space {
	struct heap *heap; /* NULL: nothing in it yet, or still to be copied from @source */
	struct region_map *regions; /* NULL: none; copied with @heap */
	struct heap_space *source;  /* whose heap this one is to be a copy of */
	struct heap_space *copies;  /* the spaces whose source this is */
	struct heap_space *next_copy, *prev_copy;
	unsigned int nr_users; /* processes; 0: its leaks outlive them */
	bool is_copy;	       /* and knows what it inherited */
	struct heap_spaces *spaces;
	struct heap_space *prev, *next; /* in heap_spaces.all */
};

#define MAX_COPIED_BYTES ((size_t)1 << 30)

struct heap_spaces {
	struct heap_space *all;
	struct shared_memory memory; /* of all heaps and regions */
	size_t max_copied_bytes;     /* what copies may take; 0: MAX_COPIED_BYTES */
	size_t limit_at;	     /* from @memory.bytes on heap_spaces_limit() may have to act */
	uint64_t nr_forgotten;	     /* children that have forgotten what they inherited */
};

void heap_spaces_deinit(struct heap_spaces *spaces);

/* A new, empty space with one user. NULL: out of memory. */
struct heap_space *heap_space_create(struct heap_spaces *spaces);

/* A copy of @source as it is now, with one user. NULL: out of memory. */
struct heap_space *heap_space_fork(struct heap_spaces *spaces, struct heap_space *source);

/* Whether there is a heap that may be changed without further ado. */
static inline bool heap_space_is_open(const struct heap_space *space)
{
	return space->heap && !space->source && !space->copies;
}

/*
 * Keeps what copies take within its limit, now that all may take more than @limit_at. Heaps that
 * are open lose what they inherited. Return 0 or -ENOMEM.
 */
int heap_spaces_limit(struct heap_spaces *spaces);

/* The heap of @space, about to be changed. Return 0 or -ENOMEM. */
int heap_space_open(struct heap_space *space, struct heap **ret);

/* The mappings of @space, which is open. Return 0 or -ENOMEM. */
int heap_space_regions(struct heap_space *space, struct region_map **ret);

/* One user more. */
void heap_space_get(struct heap_space *space);

/*
 * One user less. After the last one only the held blocks remain that were not inherited, and the
 * space itself while it has any. @space is the caller's no more. Return 0 or -ENOMEM.
 */
int heap_space_put(struct heap_spaces *spaces, struct heap_space *space);

/*
 * As heap_space_put(), but after the last user nothing remains: @visit is called for what goes, as
 * heap_spaces_list_held() has it, in no order. What it returns other than 0 is returned.
 */
int heap_space_drop(struct heap_spaces *spaces, struct heap_space *space,
		    int (*visit)(void *context, const struct heap_block *block), void *context);

/* The only user died, but may prove to live: forgets what heap_space_put() would. */
int heap_space_bury(struct heap_space *space);

/*
 * Every held block and every mapping of every space, those that are the allocators' own excepted,
 * in the order of allocation, inherited ones excluded. The array is the caller's to free. Return 0
 * or -ENOMEM.
 */
int heap_spaces_list_held(const struct heap_spaces *spaces, struct heap_block **ret,
			  size_t *ret_nr);

/* What the allocators have mapped for themselves, inherited mappings excluded. */
void heap_spaces_sum_own(const struct heap_spaces *spaces, uint64_t *ret_nr, uint64_t *ret_bytes);

/* The same, and the heaps are empty then: for the end, when the list may be as large as they are.
 */
int heap_spaces_move_held(struct heap_spaces *spaces, struct heap_block **ret, size_t *ret_nr);

#endif
