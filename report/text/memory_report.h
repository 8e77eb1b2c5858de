/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the processes' memory went, in words (docs/memory.md). */
#ifndef LEAKTOOLS_REPORT_MEMORY_REPORT_H
#define LEAKTOOLS_REPORT_MEMORY_REPORT_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/*
 * Writes what the processes grew by, and what of that was recorded. Returns the number of lines; 0
 * if the recording does not tell.
 */
int memory_report_write(FILE *out, const struct leak_report *report);

#endif
