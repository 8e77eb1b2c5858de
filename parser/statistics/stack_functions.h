/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers for the functions and the code of a stack, by which verdicts compare stacks. */
#ifndef LEAKTOOLS_PARSER_STACK_FUNCTIONS_H
#define LEAKTOOLS_PARSER_STACK_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the number of a function: a runtime has generated its code, and may have done so twice. */
#define GENERATED_FUNCTION (UINT64_C(1) << 63)

/* For verdict_input.functions_of and .places_of, where .stacks is a stack_store. */
int stack_functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr);
int stack_places_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr);

/* For verdict_input.has_call: stack_store_has_call(). */
bool stack_has_call(void *stacks, uint32_t stack_id, uint32_t call_id);

#endif
