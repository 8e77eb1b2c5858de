/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks leakrec, which has started this leakscan, which blocks the process holds. */
#ifndef LEAKTOOLS_SCAN_TRACED_LIST_H
#define LEAKTOOLS_SCAN_TRACED_LIST_H

#include "scan/heaps/traced_heap.h"

/*
 * Asks by a line of the standard output for the blocks that were held when @snapshot was taken, and
 * waits: for each byte of the standard input, a list is in the file @fd
 * (common/schema/traced_list.h). Returns 0, with no blocks if leakrec has none or has ended; or a
 * negative errno. The caller frees @ret->blocks.
 */
int traced_list_ask(int fd, const struct snapshot *snapshot, struct traced_blocks *ret);

#endif
