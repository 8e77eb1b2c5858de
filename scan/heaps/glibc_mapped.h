/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds glibc's chunks that have mappings of their own. */
#ifndef LEAKTOOLS_SCAN_GLIBC_MAPPED_H
#define LEAKTOOLS_SCAN_GLIBC_MAPPED_H

#include "scan/heaps/glibc.h"

/* Adds their segments to the heap's map. Returns 0 or -ENOMEM; doubts are noted. */
int glibc_find_mapped(struct glibc *glibc);

#endif
