/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free chunks that look like chunks in use: those of fastbins and of threads' caches. */
#ifndef LEAKTOOLS_SCAN_GLIBC_FREE_LISTS_H
#define LEAKTOOLS_SCAN_GLIBC_FREE_LISTS_H

#include "scan/heaps/glibc.h"

/*
 * Takes them out of the heap's map. Every block is set in the map by now, and nothing is numbered.
 * Returns 0 or -ENOMEM; doubts are noted.
 */
int glibc_take_free_chunks(struct glibc *glibc);

#endif
