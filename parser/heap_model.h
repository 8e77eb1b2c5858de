/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap model: a refcount for each pointer of each address space. Events in, state out: no
 * I/O, no clocks, no knowledge of perf. An allocation adds one, a release takes one; what leaves
 * {0, 1} is an anomaly.
 *
 * A heap is one address space's blocks. Processes share a heap (vfork, threads), copy it (fork) or
 * start with a new one (exec); who belongs to which is the caller's (heap_tracker.h).
 */
#ifndef LEAKTOOLS_PARSER_HEAP_MODEL_H
#define LEAKTOOLS_PARSER_HEAP_MODEL_H

#include "common/probe_schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct heap;

/* Who did something to a block, and when. */
struct heap_op {
	uint64_t time_ns;
	uint64_t sequence; /* the event's number in time order */
	pid_t pid, tid;
	uint32_t stack_id;
	const struct probe_schema *schema; /* the function that was called */
};

struct heap_block {
	uint64_t address;
	uint64_t size_bytes;
	bool size_known;   /* false: the entry that carries the size was not seen */
	bool inherited;	   /* came with fork(): the parent's allocation */
	struct heap_op allocated;
};

struct heap *heap_create(void);
/* A copy for a forked child, every block marked inherited; NULL: out of memory. */
struct heap *heap_copy(const struct heap *heap);
void heap_destroy(struct heap *heap);

enum heap_result {
	HEAP_OK,
	HEAP_STILL_HELD,   /* alloc: the address was held; *ret_previous is the block given up */
	HEAP_UNKNOWN,	   /* release: never seen allocated; nothing changed */
	HEAP_DOUBLE_FREE,  /* release: already released; *ret_released says by whom */
};

/*
 * Holds @block (count 0 -> 1). On HEAP_STILL_HELD the new block takes the place of the old one.
 * Returns a heap_result or -ENOMEM.
 */
int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous);

/*
 * Releases the block at @address. The block is gone, but that it was released, and by whom, is
 * remembered until the address is allocated again. HEAP_OK fills @ret_block, HEAP_DOUBLE_FREE fills
 * @ret_block (the allocation) and @ret_released (the first release). Returns a heap_result or
 * -ENOMEM.
 */
int heap_release(struct heap *heap, uint64_t address, const struct heap_op *op,
		 struct heap_block *ret_block, struct heap_op *ret_released);

/* The block held at @address, or NULL. Valid until the next change. */
const struct heap_block *heap_find(const struct heap *heap, uint64_t address);

size_t heap_nr_blocks(const struct heap *heap);
uint64_t heap_held_bytes(const struct heap *heap);

/* Calls @visit for each held block, in no order; stops at and returns the first non-zero. */
int heap_for_each(const struct heap *heap, int (*visit)(void *context, const struct heap_block *b),
		  void *context);

#endif
