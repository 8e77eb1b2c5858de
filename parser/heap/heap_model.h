/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap model: a refcount for each pointer of each address space. It turns events into state,
 * without I/O, clocks or perf. An allocation adds one, a release subtracts one. A count outside {0,
 * 1} is an anomaly.
 *
 * A heap is the blocks of one address space. Processes share a heap (vfork, threads), copy it
 * (fork) or start with a new one (exec). heap_space.h knows which process has which heap.
 *
 * Memory: an entry for each held block (about 90 bytes), and one for each of the last
 * HEAP_MAX_RELEASES released addresses. A second free of an address released earlier looks like one
 * of an unknown block.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_MODEL_H
#define LEAKTOOLS_PARSER_HEAP_MODEL_H

#include "parser/heap/heap_block.h"
#include "parser/heap/shared_pages.h"

#include <stddef.h>

#define HEAP_MAX_RELEASES 65536

struct heap;

/* @memory counts its memory; copies share it. NULL: out of memory. */
struct heap *heap_create(struct shared_memory *memory);
/*
 * A copy for a forked child, with releases. Every block in it is inherited, and none provisional.
 * Unchanged parts are shared. NULL: out of memory.
 */
struct heap *heap_copy(struct heap *heap);
void heap_destroy(struct heap *heap);

enum heap_result {
	HEAP_OK,
	HEAP_STILL_HELD,  /* alloc: the address was held; *ret_previous is the old block */
	HEAP_UNKNOWN,	  /* release: not known to be allocated; nothing changed */
	HEAP_DOUBLE_FREE, /* release: already released; *ret_released is the first release */
};

/*
 * Holds @block (count 0 -> 1). On HEAP_STILL_HELD it replaces the old block. Returns a heap_result
 * or -ENOMEM.
 */
int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous);

/*
 * Releases the block at @address. The release is remembered until the address is allocated again or
 * HEAP_MAX_RELEASES others were released. HEAP_OK fills @ret_block; HEAP_DOUBLE_FREE fills
 * @ret_block (the allocation) and @ret_released (the first release). Returns a heap_result or
 * -ENOMEM.
 */
int heap_release(struct heap *heap, uint64_t address, const struct heap_op *op,
		 struct heap_block *ret_block, struct heap_op *ret_released);

/*
 * Undoes the release of @block by the event of number @sequence: holds the block again. Does
 * nothing if the address was allocated or released since. Returns 1 if the block is held again, 0
 * if not, or -ENOMEM.
 */
int heap_unrelease(struct heap *heap, const struct heap_block *block, uint64_t sequence);

/*
 * Removes the block at @address as if it had never been allocated, if it is held and the event of
 * number @sequence allocated it. Returns whether it did; then fills @ret_block.
 */
bool heap_withdraw(struct heap *heap, uint64_t address, uint64_t sequence,
		   struct heap_block *ret_block);

/* Ends a held block's provisional state, on the same conditions. Returns whether it did. */
bool heap_settle(struct heap *heap, uint64_t address, uint64_t sequence,
		 struct heap_block *ret_block);

/* The block held at @address, or NULL. Valid until the next change or search. */
const struct heap_block *heap_find(struct heap *heap, uint64_t address);

/*
 * Prefetches the slot of @address or, when it is needed sooner (@sooner), its entry. Returns
 * whether the heap is large enough for this to pay.
 */
bool heap_prefetch(const struct heap *heap, uint64_t address, bool sooner);

/* The last release of @address. NULL: it is held or not known. Valid until the next change. */
const struct heap_op *heap_find_release(const struct heap *heap, uint64_t address);

/* Keeps only the held blocks that a dead process did not inherit. Returns 0 or -ENOMEM. */
int heap_bury(struct heap *heap);

struct held_memory heap_held_memory(const struct heap *heap);

/* The heap's memory, including parts shared with others. */
size_t heap_size_bytes(const struct heap *heap);
size_t heap_nr_blocks(const struct heap *heap);

/*
 * Calls @visit for each held block, in no order. Stops at the first non-zero value and returns it.
 */
int heap_for_each(const struct heap *heap, int (*visit)(void *context, const struct heap_block *b),
		  void *context);

/* Calls @visit for each held block that was not inherited, in no order. */
void heap_for_each_own(const struct heap *heap,
		       void (*visit)(void *context, const struct heap_block *b), void *context);

/*
 * As heap_for_each_own(), but only blocks that came since the last call, or since the heap was
 * made; maybe also older ones, or the same one again. @visit may withdraw blocks, and bury the heap
 * now and then.
 */
void heap_for_each_young(struct heap *heap,
			 void (*visit)(void *context, const struct heap_block *b), void *context);

/*
 * As heap_for_each_own(), but empties the heap and frees its memory on the way, so that moving
 * blocks hardly takes twice the memory.
 */
void heap_drain(struct heap *heap, void (*visit)(void *context, const struct heap_block *b),
		void *context);

#endif
