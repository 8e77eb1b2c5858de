/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address spaces: which processes use the same heap, and what happens to a heap without users. A
 * space is shared (vfork: one more user), copied (fork) or left (exec, exit, a reused pid).
 *
 * A fork copies lazily: the child's space refers to its source until either is about to change.
 * Most children exec before that, and their copy is never made. So a heap must be opened by
 * heap_space_open(), which makes the pending copies. A copy takes memory for what changes in it or
 * in its source (heap_copy()).
 *
 * The memory of all copies is limited. Beyond the limit, children forget what they inherited, the
 * oldest first, and are counted. That hides no leak, because inherited blocks are the parent's. But
 * if the child frees one of them, it is a free of an unknown block.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_SPACE_H
#define LEAKTOOLS_PARSER_HEAP_SPACE_H

#include "parser/heap/heap_model.h"
#include "parser/heap/region_map.h"

struct heap_space {
	struct heap *heap;	    /* NULL: empty so far, or still to be copied from @source */
	struct region_map *regions; /* NULL: none; copied with @heap */
	struct heap_space *source;  /* its heap is still to be copied */
	struct heap_space *copies;  /* the spaces whose source this is */
	struct heap_space *next_copy, *prev_copy;
	unsigned int nr_users; /* processes; 0: its leaks outlive them */
	unsigned int nr_ends;  /* how often its last user seemed gone */
	bool is_copy;	       /* and has not forgotten what it inherited */
	uint64_t ended_ns;     /* when its last user's exit was told (process_ends.h); 0: not */
	struct heap_spaces *spaces;
	struct heap_space *prev, *next; /* in heap_spaces.all */
	bool is_active;
	struct heap_space *prev_active, *next_active; /* in heap_spaces.active */
};

/*
 * An end takes as long as the space has blocks. After so many, each with an event of the process
 * after it, its exits are no ends.
 */
#define MAX_ENDS	 16

#define MAX_COPIED_BYTES ((size_t)1 << 30)

struct heap_spaces {
	struct heap_space *all;
	struct heap_space *active;   /* opened since heap_spaces_take_active() */
	struct shared_memory memory; /* of all heaps and regions */
	size_t max_copied_bytes;     /* what copies may take; 0: MAX_COPIED_BYTES */
	size_t limit_at; /* the value of @memory.bytes at which heap_spaces_limit() must check again
			  */
	uint64_t nr_forgotten; /* children that forgot what they inherited */
	/* The allocators' own mappings in spaces that are gone. */
	uint64_t nr_gone_own, gone_own_bytes;
};

void heap_spaces_deinit(struct heap_spaces *spaces);

/* A new, empty space with one user. NULL: out of memory. */
struct heap_space *heap_space_create(struct heap_spaces *spaces);

/* A copy of @source as it is now, with one user. NULL: out of memory. */
struct heap_space *heap_space_fork(struct heap_spaces *spaces, struct heap_space *source);

/* True if heap_space_open() has nothing to do. */
static inline bool heap_space_is_open(const struct heap_space *space)
{
	return space->heap && !space->source && !space->copies && space->is_active;
}

/*
 * Keeps the copies within their limit; call it when all memory exceeds @limit_at. Open heaps lose
 * what they inherited. Returns 0 or -ENOMEM.
 */
int heap_spaces_limit(struct heap_spaces *spaces);

/* The memory in the blocks of @space (heap_model.h). */
struct held_memory heap_space_held_memory(const struct heap_space *space);

/* Opens the heap of @space for a change. Returns 0 or -ENOMEM. */
int heap_space_open(struct heap_space *space, struct heap **ret);

/* Takes a space out of spaces->active. NULL: there is none. */
struct heap_space *heap_spaces_take_active(struct heap_spaces *spaces);

/* Gets the mappings of @space, which must be open. Returns 0 or -ENOMEM. */
int heap_space_regions(struct heap_space *space, struct region_map **ret);

/* Adds a user. */
void heap_space_get(struct heap_space *space);

/*
 * Removes a user. After the last one only what heap_space_for_each() visits remains, and the space
 * itself if there is any. @space is not the caller's any more. Returns 0 or -ENOMEM.
 */
int heap_space_put(struct heap_spaces *spaces, struct heap_space *space);

/*
 * Calls @visit for what @space holds, as heap_spaces_list_held() lists it, in no order. @space must
 * have gone through heap_space_bury(). Returns 0, or @visit's non-zero value.
 */
int heap_space_for_each(const struct heap_space *space,
			int (*visit)(void *context, const struct heap_block *block), void *context);

/*
 * As heap_space_put(), but after the last user nothing remains. Calls @visit for what ends, as
 * heap_space_for_each(). Returns 0, -ENOMEM, or @visit's non-zero value.
 */
int heap_space_drop(struct heap_spaces *spaces, struct heap_space *space,
		    int (*visit)(void *context, const struct heap_block *block), void *context);

/* True if the exit of the last user is the end of @space. */
static inline bool heap_space_may_end(const struct heap_space *space)
{
	return space->nr_users <= 1 && space->nr_ends <= MAX_ENDS;
}

/*
 * The last process seems gone but may reappear: forgets what heap_space_put() would. Returns 0 or
 * -ENOMEM.
 */
int heap_space_bury(struct heap_space *space);

/*
 * Removes @space, which has gone through heap_space_bury(), if heap_space_for_each() would visit
 * nothing. Returns whether it did.
 */
bool heap_space_remove_empty(struct heap_spaces *spaces, struct heap_space *space);

/*
 * Lists all held blocks and all mappings of all spaces in the order of allocation, except inherited
 * ones and the allocators' own. The caller frees the array. Returns 0 or -ENOMEM.
 */
int heap_spaces_list_held(const struct heap_spaces *spaces, struct heap_block **ret,
			  size_t *ret_nr);

/* Adds up the allocators' own mappings, except inherited ones. */
void heap_spaces_sum_own(const struct heap_spaces *spaces, uint64_t *ret_nr, uint64_t *ret_bytes);

/*
 * As heap_spaces_list_held(), but empties the heaps. For the end, when the list may be as large as
 * they are.
 */
int heap_spaces_move_held(struct heap_spaces *spaces, struct heap_block **ret, size_t *ret_nr);

#endif
