/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions' names as a legend can show them: C++ and Rust names without what is between angle
 * brackets and parentheses, without hashes and clones; and which functions merely pass memory on.
 */
#ifndef LEAKTOOLS_PLOT_FRAME_NAME_H
#define LEAKTOOLS_PLOT_FRAME_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "cache::Map<std::string, int>::insert(int) const [clone .part.0]" is "cache::Map<>::insert". A
 * name that is longer than @max_chars then loses outer scopes first, "...Map<>::insert"; it ends in
 * "..." if its last part alone is too long. The caller frees it; NULL: out of memory.
 */
char *frame_name_short(const char *symbol, size_t max_chars);

/*
 * True for allocators and for what merely wraps them (operator new, xmalloc, g_malloc, the C++
 * library): who asked for the memory is further out. The page for browsers has the same list
 * (report/html/model.js).
 */
bool frame_name_is_wrapper(const char *symbol);

#endif
