/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free chunks that are in no list for a moment, and look like blocks in use: a thread inside
 * malloc() or free() has taken them off. It holds nothing but
 *  - the chunk's address, which is 16 less than the block's,
 *  - the first of a list: malloc_consolidate() takes a whole fastbin and gives back one chunk after
 *    the other; the links are mangled,
 *  - a thread's cache, the heads of many such lists, which tcache_thread_shutdown() frees,
 *  - the free chunk before it, with which free() is about to merge it
 * (malloc/malloc.c of glibc 2.31 to 2.44).
 */
#ifndef LEAKTOOLS_SCAN_CHUNKS_IN_FLIGHT_H
#define LEAKTOOLS_SCAN_CHUNKS_IN_FLIGHT_H

#include "scan/heaps/heap.h"

/* The block that begins at @address, or HEAP_NONE. */
uint32_t chunk_block_at(const struct heap *heap, uint64_t address);

/* The block that is behind @block in a free list, if it is in one; else HEAP_NONE. */
uint32_t chunk_next_in_list(const struct heap *heap, uint32_t block);

/* The block of the chunk behind the free chunk at @address; HEAP_NONE: there is no such chunk. */
uint32_t chunk_behind_free(const struct heap *heap, uint64_t address);

#endif
