/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises functions that only pass memory on, by their names. See user_frame.h. */
#ifndef LEAKTOOLS_COMMON_WRAPPER_NAMES_H
#define LEAKTOOLS_COMMON_WRAPPER_NAMES_H

#include <stdbool.h>

/* True for allocators and their wrappers: operator new, xmalloc, g_malloc, the C++ library. */
bool wrapper_names_have(const char *symbol);

#endif
