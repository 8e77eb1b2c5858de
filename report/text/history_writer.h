/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the `periods` and `history` lines of the `leaks` text (docs/leaks-format.md): how much all
 * stacks together, the most important ones and causes held over time, and how long freed blocks
 * lived. The data come from the sites' statistics, so reading a recording takes no longer.
 */
#ifndef LEAKTOOLS_REPORT_HISTORY_WRITER_H
#define LEAKTOOLS_REPORT_HISTORY_WRITER_H

#include "parser/verdicts/leak_report.h"
#include "report/text/stack_lines.h"

/*
 * At most so many stacks by their peaks, as many of the worst that still hold blocks, and as many
 * causes.
 */
#define HISTORY_MAX_STACKS 24

/*
 * Writes nothing if options select blocks: a history is that of all blocks of a stack. @causes are
 * the numbers of report->verdicts.causes in the text, 0 for those that are not in it. Returns 0 or
 * -ENOMEM, unreported. Errors of @lines->out are the caller's to check.
 */
int history_write(struct stack_lines *lines, const struct leak_report *report,
		  const size_t *causes);

#endif
