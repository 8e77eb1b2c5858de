/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `leaks` text, version 1 (docs/leaks-format.md): what leakparse writes, and leakplot and awk
 * read. leakfollow's lines have the same columns behind a refcount.
 */
#ifndef LEAKTOOLS_REPORT_LEAKS_WRITER_H
#define LEAKTOOLS_REPORT_LEAKS_WRITER_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* Prints "0.100000000..0.250000000", in seconds since the recording's first event. */
void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window);

/* Prints "3072" or "1000..2000". */
void leaks_write_size(FILE *out, const struct size_range *size);

/*
 * Writes the report. Returns 0 or the error of @out (not reported: only the caller knows what @out
 * is).
 */
int leaks_write(FILE *out, const struct leak_report *report);

/* "SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK", and no newline. */
void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op);

/* The frames of a stack, a line each behind a tab. */
void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id);

#endif
