/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/demangler.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct demangling {
	char text[DEMANGLE_MAX_RESULT + 1];
	size_t len;
	jmp_buf too_long;
};

/*
 * A mangled name can refer back to parts of itself, so that each letter may double the result. The
 * only way to stop printing is to jump out of the callback. libiberty's callback interface
 * allocates nothing on the heap for C++ (cp-demangle.c), so the jump leaks nothing.
 */
static void append(const char *text, size_t len, void *context)
{
	struct demangling *result = context;

	if (len > DEMANGLE_MAX_RESULT - result->len)
		longjmp(result->too_long, 1);
	memcpy(result->text + result->len, text, len);
	result->len += len;
}

char *demangle(const char *name)
{
	struct demangling *volatile result; /* gcc 16 does not see that it stays */
	char *volatile demangled = NULL;

	if (name[0] != '_' || strlen(name) > DEMANGLE_MAX_MANGLED)
		return NULL;
	result = malloc(sizeof(*result));
	if (!result)
		return NULL;
	result->len = 0;

	if (!setjmp(result->too_long)) {
		/* Rust's older scheme is also valid C++, but the reverse does not hold. */
		int ok = rust_demangle_callback(name, DMGL_NO_OPTS, append, result);

		if (!ok) {
			result->len = 0;
			ok = cplus_demangle_v3_callback(name, DMGL_NO_OPTS, append, result);
		}
		if (ok && result->len) {
			result->text[result->len] = '\0';
			demangled = strdup(result->text);
		}
	}
	free(result);
	return demangled;
}
