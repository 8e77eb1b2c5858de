/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `periods` and `history` lines of the `leaks` text (docs/leaks-format.md): what all stacks and
 * the most interesting ones held over time, and how long their freed blocks lived. They come from
 * the sites' statistics, so they cost nothing while a recording is read.
 */
#ifndef LEAKTOOLS_REPORT_HISTORY_WRITER_H
#define LEAKTOOLS_REPORT_HISTORY_WRITER_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* Of each kind: the stacks that held most at a time, and the worst of those that still do. */
#define HISTORY_MAX_STACKS 24

/*
 * Writes nothing if options select blocks: a stack's history is that of all its blocks. Returns 0
 * or -ENOMEM, not reported; the stream's errors are the caller's to look for.
 */
int history_write(FILE *out, const struct leak_report *report);

#endif
