/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of functions that only pass memory on. wrapper_names.h says how they are looked up. */
#ifndef LEAKTOOLS_COMMON_WRAPPER_TABLES_H
#define LEAKTOOLS_COMMON_WRAPPER_TABLES_H

#include <stddef.h>

enum wrapper_kind {
	WRAPPER_NONE,
	WRAPPER_ANYWHERE,
	WRAPPER_OF_RUST, /* the same, and its callers are Rust */
	WRAPPER_OF_CGO,	 /* the same, and it came from a goroutine's stack */
	WRAPPER_IN_RUST, /* only if its callers are Rust: other programs may also have a "core::" */
};

struct wrapper_row {
	const char *name;
	enum wrapper_kind kind;
	const char *module; /* the beginning of its file's name, if the name alone is ambiguous */
};

/* Whole names, in strcmp()'s order. Both tables are static. */
const struct wrapper_row *wrapper_table_exact(size_t *ret_nr);

/* Beginnings of names, in strcmp()'s order. None is the beginning of another. */
const struct wrapper_row *wrapper_table_beginnings(size_t *ret_nr);

#endif
