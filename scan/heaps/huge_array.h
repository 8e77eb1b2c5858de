/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrays that are used as a whole, in no order, with one entry for each block: in huge pages, if
 * the kernel has some, as each fault and each miss of the TLB costs more than what is done with an
 * entry.
 */
#ifndef LEAKTOOLS_SCAN_HUGE_ARRAY_H
#define LEAKTOOLS_SCAN_HUGE_ARRAY_H

#include <stddef.h>

/* @nr times @size bytes, each set to @byte; NULL: no memory. free() releases it. */
void *huge_array_alloc(size_t nr, size_t size, int byte);

#endif
