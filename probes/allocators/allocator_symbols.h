/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of an ELF file that name functions of the schema, and those by which allocators are
 * recognised.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_SYMBOLS_H
#define LEAKTOOLS_PROBES_ALLOCATOR_SYMBOLS_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

#define ALLOCATOR_MAX_PREFIX 16

/* Recognised by symbols that no other allocator has. */
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
	char prefix[ALLOCATOR_MAX_PREFIX]; /* of jemalloc's functions; usually empty */
	bool kinds[ALLOCATOR_NR_KINDS];	   /* which allocators' own symbols were found */
	bool imports_malloc;
	struct allocator_symbol *list;
	size_t nr;
};

/* Returns 0 or -ENOMEM. Release with allocator_symbols_deinit(). */
int allocator_symbols_init(struct allocator_symbols *ret, const struct elf_image *image);
void allocator_symbols_deinit(struct allocator_symbols *symbols);

/*
 * True if the file is an allocator by its C functions: malloc and free with one prefix; in a static
 * program any that allocates (musl's are linked one by one). The malloc of a dynamic loader does
 * not count: it serves only until libc is loaded (glibc before 2.32). musl's loader is its libc.
 */
bool allocator_symbols_have_malloc(const struct allocator_symbols *symbols);

/* True if the file has operators new and delete. */
bool allocator_symbols_have_operators(const struct allocator_symbols *symbols);

#endif
