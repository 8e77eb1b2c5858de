/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the blocks of glibc's malloc. */
#ifndef LEAKTOOLS_SCAN_GLIBC_HEAP_H
#define LEAKTOOLS_SCAN_GLIBC_HEAP_H

#include "scan/heaps/heap.h"

/*
 * Fills in @heap, if the process has a glibc. Returns 0; -EEXIST or -E2BIG if the heap is none that
 * glibc makes; or -ENOMEM.
 */
int glibc_heap_read(struct heap *heap);

#endif
