/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is remembered of causes from one judgement of a growing recording to the next.
 *
 * A cause has no name that stays: with time its stacks become more, and it may be joined with
 * others. So marks are kept for stacks. A cause has a mark if stacks with a tenth of what it holds
 * have it. Two stacks with the same functions are one, in whatever process.
 */
#ifndef LEAKTOOLS_REPORT_CAUSE_MEMORY_H
#define LEAKTOOLS_REPORT_CAUSE_MEMORY_H

#include "parser/verdicts/leak_report.h"

enum cause_mark {
	CAUSE_LEAKS,
	CAUSE_GROWS, /* faster than a limit */
	CAUSE_IS_REPORTED,
	CAUSE_NR_MARKS,
};

struct cause_memory;

/* NULL: out of memory. */
struct cause_memory *cause_memory_create(void);
void cause_memory_destroy(struct cause_memory *memory);

/* Begins the next judgement. */
void cause_memory_begin(struct cause_memory *memory);

/* Gives a cause of this judgement a mark. Returns 0 or -ENOMEM. */
int cause_memory_mark(struct cause_memory *memory, const struct leak_report *report,
		      const struct leak_cause *cause, enum cause_mark mark);

/*
 * Whether the cause had the mark in the judgement before, or for CAUSE_IS_REPORTED in any, this one
 * included. Returns 0 or -ENOMEM.
 */
int cause_memory_had(const struct cause_memory *memory, const struct leak_report *report,
		     const struct leak_cause *cause, enum cause_mark mark, bool *ret);

#endif
