/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out which allocator a process has, and its blocks. */
#ifndef LEAKTOOLS_SCAN_HEAP_READ_H
#define LEAKTOOLS_SCAN_HEAP_READ_H

#include "scan/heaps/traced_heap.h"

/*
 * Asks for the recorded blocks that the process of a snapshot holds, where nothing else tells of
 * its heap. Returns 0 or a negative errno. The caller frees @ret->blocks. NULL in its place: there
 * are none.
 */
struct traced_source {
	int (*read)(void *context, const struct snapshot *snapshot, struct traced_blocks *ret);
	void *context;
};

/*
 * Finds the blocks of @snapshot; @source has those of an unknown allocator. Returns 0, also if no
 * allocator was found or the heap is not whole; -EEXIST or -E2BIG if it is none that an allocator
 * makes; or -ENOMEM. Reports nothing. Release with heap_deinit() in either case.
 */
int heap_read(struct heap *ret, const struct snapshot *snapshot,
	      const struct traced_source *source);

#endif
