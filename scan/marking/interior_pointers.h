/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers into a block that are as good as one to its start, because it can be computed from them.
 * These are the heuristics of valgrind's memcheck (--leak-check-heuristics, valgrind's manual).
 */
#ifndef LEAKTOOLS_SCAN_INTERIOR_POINTERS_H
#define LEAKTOOLS_SCAN_INTERIOR_POINTERS_H

#include "scan/heaps/heap.h"

/* True if a pointer to @offset in the block is such a one. */
bool interior_pointer_is_sure(const struct snapshot *snapshot, const struct heap_block_view *block,
			      uint64_t offset);

#endif
