/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `changes` text, version 1 (docs/leaks-format.md): what leakparse --diff writes.
 */
#ifndef LEAKTOOLS_PARSER_DIFF_WRITER_H
#define LEAKTOOLS_PARSER_DIFF_WRITER_H

#include "parser/analysis.h"
#include "parser/intervals.h"

#include <stdio.h>

/*
 * Writes the @nr intervals of the analysis, of each the first @top changes (0: all). Returns 0 or
 * the error of @out (not reported: only the caller knows what @out is).
 */
int diff_write(FILE *out, const struct analysis *analysis, const struct interval *intervals,
	       size_t nr, size_t top);

#endif
