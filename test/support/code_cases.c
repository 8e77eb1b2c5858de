/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/code_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The linker's names for the bounds of the section; null in a program without one. */
extern const struct code_case __start_code_cases[] __attribute__((weak));
extern const struct code_case __stop_code_cases[] __attribute__((weak));

const struct code_case *code_case_find(const char *name)
{
#if !defined(__x86_64__)
	skip();
#endif
	for (const struct code_case *code = __start_code_cases; code != __stop_code_cases; code++)
		if (strcmp(code->name, name) == 0)
			return code;
	fail_msg("no code %s", name);
	return NULL;
}
