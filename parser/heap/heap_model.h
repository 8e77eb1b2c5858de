/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap model: a refcount for each pointer of each address space. Events in, state out: no
 * I/O, no clocks, no knowledge of perf. An allocation adds one, a release takes one; what leaves
 * {0, 1} is an anomaly.
 *
 * A heap is one address space's blocks. Processes share a heap (vfork, threads), copy it (fork) or
 * start with a new one (exec); who belongs to which is the caller's (heap_space.h).
 *
 * Memory: one entry for each held block (some 90 bytes), and one for each of the HEAP_MAX_RELEASES
 * addresses released last. A second free of an address released before those is seen as one of an
 * unknown block.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_MODEL_H
#define LEAKTOOLS_PARSER_HEAP_MODEL_H

#include "parser/heap/heap_block.h"
#include "parser/heap/shared_pages.h"

#include <stddef.h>

#define HEAP_MAX_RELEASES 65536

struct heap;

/* @memory counts what it takes; copies share it. NULL: out of memory. */
struct heap *heap_create(struct shared_memory *memory);
/*
 * A copy for a forked child, releases included, every block marked inherited and none provisional;
 * NULL: out of memory. What neither changes, both have in one place.
 */
struct heap *heap_copy(struct heap *heap);
void heap_destroy(struct heap *heap);

enum heap_result {
	HEAP_OK,
	HEAP_STILL_HELD,  /* alloc: the address was held; *ret_previous is the block given up */
	HEAP_UNKNOWN,	  /* release: never seen allocated; nothing changed */
	HEAP_DOUBLE_FREE, /* release: already released; *ret_released says by whom */
};

/*
 * Holds @block (count 0 -> 1). On HEAP_STILL_HELD the new block takes the place of the old one.
 * Returns a heap_result or -ENOMEM.
 */
int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous);

/*
 * Releases the block at @address. The block is gone, but that it was released, and by whom, is
 * remembered until the address is allocated again, or HEAP_MAX_RELEASES others were released.
 * HEAP_OK fills @ret_block, HEAP_DOUBLE_FREE fills @ret_block (the allocation) and @ret_released
 * (the first release). Returns a heap_result or -ENOMEM.
 */
int heap_release(struct heap *heap, uint64_t address, const struct heap_op *op,
		 struct heap_block *ret_block, struct heap_op *ret_released);

/*
 * Takes back the release of @block that the event of number @sequence made: it is held again, as it
 * was. Does nothing if the address has been allocated or released since. Returns 1 if it is held
 * again, 0 if not, or -ENOMEM.
 */
int heap_unrelease(struct heap *heap, const struct heap_block *block, uint64_t sequence);

/*
 * Removes the block at @address as if it had never been allocated, provided that it is held and was
 * allocated by the event of number @sequence. Fills @ret_block; returns whether it did.
 */
bool heap_withdraw(struct heap *heap, uint64_t address, uint64_t sequence,
		   struct heap_block *ret_block);

/* Ends a held block's provisional state (on the same conditions). Returns whether it did. */
bool heap_settle(struct heap *heap, uint64_t address, uint64_t sequence,
		 struct heap_block *ret_block);

/* The block held at @address, or NULL. Valid until the next change or search. */
const struct heap_block *heap_find(struct heap *heap, uint64_t address);

/*
 * @address will be asked for soon: fetches into the cache where its entry is looked for, or, when
 * it is time for that (@sooner), the entry. Returns whether the heap is large enough for that to
 * pay.
 */
bool heap_prefetch(const struct heap *heap, uint64_t address, bool sooner);

/* The last release of @address, or NULL if it is held or not known. Valid until the next change. */
const struct heap_op *heap_find_release(const struct heap *heap, uint64_t address);

/*
 * Keeps only what a dead process leaves behind: the held blocks that it did not inherit. Returns 0
 * or -ENOMEM.
 */
int heap_bury(struct heap *heap);

/* What the heap takes by itself, and with what it has in common with others. */
size_t heap_size_bytes(const struct heap *heap);
size_t heap_nr_blocks(const struct heap *heap);
size_t heap_nr_releases(const struct heap *heap);

/* Calls @visit for each held block, in no order; stops at and returns the first non-zero. */
int heap_for_each(const struct heap *heap, int (*visit)(void *context, const struct heap_block *b),
		  void *context);

/* Calls @visit for each held block that was not inherited, in no order. */
void heap_for_each_own(const struct heap *heap,
		       void (*visit)(void *context, const struct heap_block *b), void *context);

/*
 * As heap_for_each_own(), and leaves the heap empty: its memory is given back meanwhile, so that
 * blocks which move elsewhere hardly take twice the room.
 */
void heap_drain(struct heap *heap, void (*visit)(void *context, const struct heap_block *b),
		void *context);

#endif
