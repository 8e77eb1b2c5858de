/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out which allocator a process has, and its blocks. */
#ifndef LEAKTOOLS_SCAN_HEAP_READ_H
#define LEAKTOOLS_SCAN_HEAP_READ_H

#include "scan/heaps/heap.h"

/*
 * Finds the blocks of @snapshot. Returns 0, also if no allocator was found or the heap is not
 * whole; -EEXIST or -E2BIG if it is none that an allocator makes; or -ENOMEM. Reports nothing.
 * Release with heap_deinit() in either case.
 */
int heap_read(struct heap *ret, const struct snapshot *snapshot);

#endif
