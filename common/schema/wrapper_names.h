/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions merely pass memory on, by their names: every report calls a stack after the
 * function that asked for the memory, which is further out.
 */
#ifndef LEAKTOOLS_COMMON_WRAPPER_NAMES_H
#define LEAKTOOLS_COMMON_WRAPPER_NAMES_H

#include <stdbool.h>

/* True for allocators and for what wraps them: operator new, xmalloc, g_malloc, the C++ library. */
bool wrapper_names_have(const char *symbol);

#endif
