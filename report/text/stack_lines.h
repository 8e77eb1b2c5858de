/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `frames` lines of the `leaks` text (docs/leaks-format.md): they define the numbers of stacks,
 * each once, before the first line that uses the number.
 */
#ifndef LEAKTOOLS_REPORT_STACK_LINES_H
#define LEAKTOOLS_REPORT_STACK_LINES_H

#include "parser/analysis/analysis.h"
#include "report/names/named_stack.h"

#include <stdio.h>

struct stack_line;

struct stack_lines {
	const struct analysis *analysis;
	FILE *out;
	struct named_stack stack;
	struct stack_line *lines; /* by the stack's number */
	size_t nr;
	int err; /* 0 or -ENOMEM, of any call */
};

/* @analysis must outlive it; errors of @out are the caller's to check. Returns 0 or -ENOMEM. */
int stack_lines_init(struct stack_lines *lines, const struct analysis *analysis, FILE *out);
void stack_lines_deinit(struct stack_lines *lines);

/*
 * Writes the frames of @stack_id, unless they have been written. @function gave or took the block
 * of the line that is about to be written; NULL: that is not known.
 */
void stack_lines_define(struct stack_lines *lines, uint32_t stack_id, const char *function);

/*
 * The short name of frame number @frame, as one escaped word, "?" without frames. The caller frees
 * it; NULL if memory is exhausted.
 */
char *stack_lines_name(const struct named_stack *stack, size_t frame);

/* The name of a defined stack, as one escaped word. */
const char *stack_lines_caller(const struct stack_lines *lines, uint32_t stack_id);

/* Whether a defined stack has been written with another function than @function. */
bool stack_lines_has_other(const struct stack_lines *lines, uint32_t stack_id,
			   const char *function);

#endif
