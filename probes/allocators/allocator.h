/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The allocator in an ELF file: which one it is, and those of its functions that the schema knows,
 * each once, whatever its symbols. docs/allocators.md describes what is searched for.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_H
#define LEAKTOOLS_PROBES_ALLOCATOR_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

#define ALLOCATOR_NAME_MAX 96

struct allocator_function {
	const struct probe_schema *schema;
	int first_arg;		       /* see probe_symbols.h */
	char symbol[PROBE_SYMBOL_MAX]; /* the ELF symbol; of several, the plainest */
	bool is_named_by_symbol;       /* events get its name; the parser knows the row by it */
	bool is_wrapper;	       /* it only calls another recorded function: no probe */
	struct elf_function code;
};

struct allocator {
	char name[ALLOCATOR_NAME_MAX]; /* for the user: "jemalloc, glibc" */
	bool is_glibc, is_libc;
	bool shares_code;		      /* some function serves several families of blocks */
	struct allocator_function *functions; /* if there are none, the file has no allocator */
	size_t nr;
};

/*
 * Finds the allocator in @image. C++'s operators are included only if they do not call malloc; with
 * @with_operators always. Returns 0 or -ENOMEM. Release with allocator_deinit().
 */
int allocator_init(struct allocator *ret, const struct elf_image *image, bool with_operators);
void allocator_deinit(struct allocator *allocator);

/* The function whose code holds @offset of the file, or NULL. */
const struct allocator_function *allocator_find_code(const struct allocator *allocator,
						     uint64_t offset);

#endif
