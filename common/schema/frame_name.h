/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shortens function names for legends and lists: C++ and Rust names lose template arguments,
 * parameters, hashes and clone suffixes.
 */
#ifndef LEAKTOOLS_COMMON_FRAME_NAME_H
#define LEAKTOOLS_COMMON_FRAME_NAME_H

#include <stddef.h>

/*
 * "cache::Map<std::string, int>::insert(int) const [clone .part.0]" becomes "cache::Map<>::insert".
 * A result longer than @max_chars loses its outer scopes, "...Map<>::insert"; if its last part
 * alone is too long, that is cut and ends in "...". The caller frees it; NULL if memory is
 * exhausted.
 */
char *frame_name_short(const char *symbol, size_t max_chars);

#endif
