/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C++ type of a block: an object with virtual functions begins with a pointer to a table, which
 * leads to the type's name (Itanium C++ ABI, 2.5.2 and 2.9).
 */
#ifndef LEAKTOOLS_SCAN_OBJECT_TYPES_H
#define LEAKTOOLS_SCAN_OBJECT_TYPES_H

#include "common/hash.h"
#include "scan/heaps/heap.h"

struct known_table;

struct object_types {
	const struct snapshot *snapshot;
	struct known_table *by_address;
	size_t name_bytes; /* what names have cost so far */
	/* Where the last table was: of a few regions nearly all are. */
	const struct scan_region *last;
};

void object_types_init(struct object_types *ret, const struct snapshot *snapshot);
void object_types_deinit(struct object_types *types);

/* The type's name, which is untrusted; NULL: no type is known. Lives as long as @types. */
const char *object_type(struct object_types *types, const struct heap_block_view *block);

#endif
