/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the `periods` and `history` lines of the `leaks` text (docs/leaks-format.md): how much all
 * stacks together and the most important ones held over time, and how long their freed blocks
 * lived. The data come from the sites' statistics, so reading a recording takes no longer.
 */
#ifndef LEAKTOOLS_REPORT_HISTORY_WRITER_H
#define LEAKTOOLS_REPORT_HISTORY_WRITER_H

#include "parser/verdicts/leak_report.h"
#include "report/text/stack_lines.h"

/* At most so many stacks by their peaks, and as many of the worst that still hold blocks. */
#define HISTORY_MAX_STACKS 24

/*
 * Writes nothing if options select blocks: a history is that of all blocks of a stack. Returns 0 or
 * -ENOMEM, unreported. Errors of @lines->out are the caller's to check.
 */
int history_write(struct stack_lines *lines, const struct leak_report *report);

#endif
