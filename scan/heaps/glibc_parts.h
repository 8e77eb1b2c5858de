/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the parts of glibc's arenas begin and end. */
#ifndef LEAKTOOLS_SCAN_GLIBC_PARTS_H
#define LEAKTOOLS_SCAN_GLIBC_PARTS_H

#include "scan/heaps/glibc.h"

/* Finds the parts of all arenas. Returns 0 or -ENOMEM; doubts are noted. */
int glibc_find_parts(struct glibc *glibc);

#endif
