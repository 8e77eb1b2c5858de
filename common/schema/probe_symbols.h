/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which ELF symbols name functions of the schema: those of the C library, those of other allocators
 * (jemalloc's mallocx, tcmalloc's tc_*, mimalloc's mi_*), both with an allocator's prefix, and
 * C++'s operators as the Itanium ABI mangles them.
 */
#ifndef LEAKTOOLS_COMMON_PROBE_SYMBOLS_H
#define LEAKTOOLS_COMMON_PROBE_SYMBOLS_H

#include "common/schema/probe_schema.h"

#define PROBE_SYMBOL_MAX 64 /* none is as long, with its NUL */

struct probe_symbol {
	const struct probe_schema *schema;
	int first_arg;	   /* the function has this many arguments before the schema's first one */
	size_t prefix_len; /* of the allocator's prefix in the symbol: 3 for "je_malloc" */
};

/*
 * Finds what @symbol stands for. Prefixes are je_, _rjem_ (Rust's jemalloc), tc_, mi_, and @prefix
 * unless it is NULL. Returns false if it is no function of the schema's.
 */
bool probe_symbol_find(const char *symbol, const char *prefix, struct probe_symbol *ret);

/* One of C++'s operators new and delete. */
static inline bool probe_symbol_is_operator(const struct probe_symbol *symbol)
{
	return symbol->schema->family == FAMILY_NEW || symbol->schema->family == FAMILY_NEW_ARRAY;
}

#endif
