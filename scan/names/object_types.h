/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C++ type of a block: an object with virtual functions begins with a pointer to a table, which
 * leads to the type's name (Itanium C++ ABI, 2.5.2 and 2.9).
 */
#ifndef LEAKTOOLS_SCAN_OBJECT_TYPES_H
#define LEAKTOOLS_SCAN_OBJECT_TYPES_H

#include "common/hash.h"
#include "scan/heaps/heap.h"

#include <pthread.h>

struct known_table;

#define TYPE_CACHE_BITS 8u

/* What one of several threads has seen last. All zeros in the beginning. */
struct type_cache {
	/* Where the last word led to that may be a table, and the last that is none. */
	const struct scan_region *constant, *other;
	struct {
		uint64_t address; /* 0: none */
		const char *name;
	} known[1 << TYPE_CACHE_BITS];
};

struct object_types {
	const struct snapshot *snapshot;
	struct known_table *by_address;
	size_t name_bytes;     /* what names have cost so far */
	pthread_mutex_t lock;  /* of what is above */
	struct type_cache own; /* of object_type() */
};

void object_types_init(struct object_types *ret, const struct snapshot *snapshot);
void object_types_deinit(struct object_types *types);

/* The type's name, which is untrusted; NULL: no type is known. Lives as long as @types. */
const char *object_type(struct object_types *types, const struct heap_block_view *block);

/* The same for several threads at the same time, each with a cache of its own. */
const char *object_type_cached(struct object_types *types, struct type_cache *cache,
			       const struct heap_block_view *block);

#endif
