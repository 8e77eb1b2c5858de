/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds glibc's arenas: main_arena in the libc's data, from there the others. */
#ifndef LEAKTOOLS_SCAN_GLIBC_ARENAS_H
#define LEAKTOOLS_SCAN_GLIBC_ARENAS_H

#include "scan/heaps/glibc.h"

/* Finds the arenas of every libc in the process. Returns 0, also if there is none, or -ENOMEM. */
int glibc_arenas_find(struct glibc *glibc);

#endif
