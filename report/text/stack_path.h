/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stack on one line: "query_font < load_font < main  at leaky_daemon.c:63". */
#ifndef LEAKTOOLS_REPORT_STACK_PATH_H
#define LEAKTOOLS_REPORT_STACK_PATH_H

#include "report/names/named_stack.h"

#include <stdio.h>

/*
 * Writes the frames of @stack from @first outwards, as many as fit, then the source line or module
 * of the first one. Names are escaped. Errors of @out are the caller's to check.
 */
void stack_path_write(FILE *out, const struct named_stack *stack, size_t first);

#endif
