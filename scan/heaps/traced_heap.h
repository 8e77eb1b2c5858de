/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap of an allocator whose structures leakscan does not read (jemalloc, tcmalloc, mimalloc,
 * musl's): of its blocks, only those are known whose allocation was recorded. They are the blocks
 * here. All other memory of the allocator is where pointers are looked for: older blocks, free
 * memory, and its own structures, some of which point to nearly every block. So a pointer to a
 * block may be one that nobody reads any more; but if there is none, the program has none.
 */
#ifndef LEAKTOOLS_SCAN_TRACED_HEAP_H
#define LEAKTOOLS_SCAN_TRACED_HEAP_H

#include "common/schema/traced_list.h"
#include "scan/heaps/heap.h"

/* The blocks that the process held when the snapshot was taken, as far as they were recorded. */
struct traced_blocks {
	struct traced_block *blocks; /* in any order */
	size_t nr;
};

/*
 * Makes a heap of @blocks, which are sorted. What cannot be one is left out: blocks of a few bytes,
 * which share a unit with others, and blocks that overlap (one was released, and that event was
 * lost). Returns as heap_read().
 */
int traced_heap_read(struct heap *heap, struct traced_blocks *blocks);

#endif
