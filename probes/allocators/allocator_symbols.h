/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbols of an ELF file that stand for functions of the schema, and what tells allocators. */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_SYMBOLS_H
#define LEAKTOOLS_PROBES_ALLOCATOR_SYMBOLS_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

#define ALLOCATOR_MAX_PREFIX 16

/* Told by symbols that no other has. */
enum allocator_kind {
	ALLOCATOR_JEMALLOC,
	ALLOCATOR_TCMALLOC,
	ALLOCATOR_MIMALLOC,
	ALLOCATOR_GLIBC,
	ALLOCATOR_MUSL,
	ALLOCATOR_NR_KINDS,
};

struct allocator_symbol {
	struct probe_symbol meaning;
	char name[PROBE_SYMBOL_MAX];
	bool is_local;
	struct elf_function code;
};

struct allocator_symbols {
	const struct elf_image *image;
	bool is_static;
	char prefix[ALLOCATOR_MAX_PREFIX]; /* of jemalloc's functions, mostly empty */
	bool kinds[ALLOCATOR_NR_KINDS];	   /* which allocators' own symbols there are */
	bool imports_malloc;
	struct allocator_symbol *list;
	size_t nr;
};

/* Returns 0 or -ENOMEM. Release with allocator_symbols_deinit(). */
int allocator_symbols_init(struct allocator_symbols *ret, const struct elf_image *image);
void allocator_symbols_deinit(struct allocator_symbols *symbols);

/*
 * True if the file is an allocator by its C functions: malloc and free, of one prefix; in a static
 * program any that allocates (musl's are linked one by one). A dynamic loader's malloc, which
 * serves only until libc is there (glibc before 2.32), does not count; musl's loader is its libc.
 */
bool allocator_symbols_have_malloc(const struct allocator_symbols *symbols);

/* True if there are operators new and delete. */
bool allocator_symbols_have_operators(const struct allocator_symbols *symbols);

#endif
