/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an ELF file has of an allocator: which one it is, and its functions that the schema knows,
 * each once, by whatever symbol. docs/allocators.md tells what is looked for.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_H
#define LEAKTOOLS_PROBES_ALLOCATOR_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

#define ALLOCATOR_NAME_MAX 96

struct allocator_function {
	const struct probe_schema *schema;
	int first_arg;		       /* probe_symbols.h */
	char symbol[PROBE_SYMBOL_MAX]; /* the ELF symbol, of several the plainest */
	bool is_named_by_symbol;       /* an event of that name means the schema's row */
	bool is_wrapper;	       /* another one of these does, and is seen to do, its work */
	struct elf_function code;
};

struct allocator {
	char name[ALLOCATOR_NAME_MAX]; /* for the user: "jemalloc, glibc" */
	bool is_glibc, is_libc;
	bool shares_code; /* functions of different families, so that blocks' are not known */
	struct allocator_function *functions; /* none: there is no allocator in the file */
	size_t nr;
};

/*
 * Finds what @image has. C++'s operators are taken only where they are an allocator of their own;
 * with @with_operators wherever they are. Returns 0 or -ENOMEM. Release with allocator_deinit().
 */
int allocator_init(struct allocator *ret, const struct elf_image *image, bool with_operators);
void allocator_deinit(struct allocator *allocator);

/* The function whose code holds @offset of the file, or NULL. */
const struct allocator_function *allocator_find_code(const struct allocator *allocator,
						     uint64_t offset);

#endif
