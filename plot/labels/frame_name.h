/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions' names as a legend can show them: C++ and Rust names without what is between angle
 * brackets and parentheses, without hashes and clones.
 */
#ifndef LEAKTOOLS_PLOT_FRAME_NAME_H
#define LEAKTOOLS_PLOT_FRAME_NAME_H

#include <stddef.h>

/*
 * "cache::Map<std::string, int>::insert(int) const [clone .part.0]" is "cache::Map<>::insert". A
 * name that is longer than @max_chars then loses outer scopes first, "...Map<>::insert"; it ends in
 * "..." if its last part alone is too long. The caller frees it; NULL: out of memory.
 */
char *frame_name_short(const char *symbol, size_t max_chars);

#endif
