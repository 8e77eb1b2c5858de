/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a line that the `leaks` and `changes` texts and leakfollow's output share, and the
 * comments of the first (docs/leaks-format.md). All functions write to @out; the caller checks it
 * for errors.
 */
#ifndef LEAKTOOLS_REPORT_LEAKS_TEXT_H
#define LEAKTOOLS_REPORT_LEAKS_TEXT_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* "SECONDS.NNNNNNNNN" */
void leaks_write_time(FILE *out, uint64_t time_ns);
/* The same, counted from the recording's first event; 0 for a time before it. */
void leaks_write_time_since_start(FILE *out, const struct analysis *analysis, uint64_t time_ns);

/* "0.100000000..0.250000000", in seconds since the recording's first event. */
void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window);

/* "SIZE ADDRESS TIME EVENT PID TID", without a newline. */
void leaks_write_operation(FILE *out, const struct heap_block *block, const struct heap_op *op);
/* "SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK", without a newline. */
void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op);

/* The frames of a stack from number @first outwards, one per line, each line after a tab. */
void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id, size_t first);

/* The rate of growth as KEY=VALUE words; nothing if there is none. */
void leaks_write_rate(FILE *out, const struct site_verdict *verdict);

/* In windows: the words that say what the listed blocks stand for, and that it is in windows. */
void leaks_write_estimate(FILE *out, const struct site_verdict *verdict,
			  const struct leak_estimate *estimate);
void leaks_write_observed(FILE *out, const struct leak_report *report);

/* The comments after the summary: what makes the result doubtful, or narrower. */
void leaks_write_comments(FILE *out, const struct leak_report *report);

#endif
