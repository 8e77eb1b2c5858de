/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code for tests of functions that read machine code. It is assembled from the .S file beside the
 * test, with the macros of code_cases.inc.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_CODE_CASES_H
#define LEAKTOOLS_TEST_SUPPORT_CODE_CASES_H

#include <stddef.h>
#include <stdint.h>

/* As the macros lay it out. */
struct code_case {
	const char *name;
	const uint8_t *code, *function_end, *end;
};

/* The code of that name. None fails the test. Where no x86-64 code was assembled, it is skipped. */
const struct code_case *code_case_find(const char *name);

static inline size_t code_case_function_size(const struct code_case *code)
{
	return (size_t)(code->function_end - code->code);
}

/* The whole code of the file, in which the case lies. */
static inline size_t code_case_size(const struct code_case *code)
{
	return (size_t)(code->end - code->code);
}

#endif
