/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the `leaks` text, version 2 (docs/leaks-format.md): leakparse's default output, which
 * leakplot and awk read.
 */
#ifndef LEAKTOOLS_REPORT_LEAKS_WRITER_H
#define LEAKTOOLS_REPORT_LEAKS_WRITER_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/*
 * Writes the report. Returns 0 or -ENOMEM, or -EIO if @out has failed. It prints no message: only
 * the caller knows the name of @out.
 */
int leaks_write(FILE *out, const struct leak_report *report);

/*
 * The same in short, of a recording that goes on: without threads, unexpected operations and
 * blocks, and with at most @max processes, causes and stacks. @head are further lines, which follow
 * the summary.
 */
int leaks_write_short(FILE *out, const struct leak_report *report, const char *head, size_t max);

#endif
