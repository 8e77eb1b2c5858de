/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process has more of than at an earlier scan: leaks and caches, without any probe. */
#ifndef LEAKTOOLS_SCAN_GROWTH_H
#define LEAKTOOLS_SCAN_GROWTH_H

#include "scan/report/census_file.h"
#include "scan/report/holder_text.h"

/*
 * Writes the sizes and types of which there are more blocks than in @before, the most bytes first:
 * ten, or all. Returns 0 or a negative errno, reported.
 */
int growth_write(FILE *out, struct scan_report *report, const struct census_file *before, bool all);

#endif
