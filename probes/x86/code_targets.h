/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that an x86-64 function jumps to or calls, and those whose addresses it loads. The
 * file is hostile. Code of other architectures has none.
 */
#ifndef LEAKTOOLS_PROBES_CODE_TARGETS_H
#define LEAKTOOLS_PROBES_CODE_TARGETS_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

/* A place outside the function. */
struct code_target {
	uint64_t offset;    /* in the file; valid if @symbol is NULL */
	const char *symbol; /* that a PLT stub leads to, by the relocations of the file */
};

/*
 * Finds the symbol whose address a relocation stores at @address. Returns false if there is none.
 */
bool code_target_of_slot(const struct elf_image *image, uint64_t address,
			 char ret[static PROBE_SYMBOL_MAX]);

/* Where a call goes. Distances are from the call's first byte, in bytes. */
struct call_target {
	unsigned int size_bytes;  /* of the call */
	int64_t distance;	  /* to the target, perhaps a PLT stub; 0: only a pointer tells */
	uint64_t offset;	  /* of the target in the file; 0: none, or a stub */
	int64_t pointer_distance; /* to the pointer that it goes through; 0: it needs none */
	char symbol[PROBE_SYMBOL_MAX]; /* that this pointer leads to; "" without one */
};

/*
 * Finds where the call at @offset goes, which is an instruction's first byte. Returns false if that
 * is no direct call, nor one through a pointer that a relocation of the file fills.
 */
bool code_target_of_call(const struct elf_image *image, uint64_t offset, struct call_target *ret);

/* Called for each target. Returns true to end the search. */
typedef bool code_target_visit(void *context, const struct code_target *target);

/*
 * Visits the targets of the jumps and calls of @function; with @only_first only if it is nothing
 * but a jump. Returns 1 if @visit ended the search, 0 if not, or -ENOMEM.
 */
int code_targets_visit(const struct elf_image *image, const struct elf_function *function,
		       bool only_first, code_target_visit *visit, void *context);

/*
 * Finds at most @max places in the code of the file whose addresses @function loads, each once.
 * Returns how many, or -ENOMEM.
 */
int code_targets_loaded(const struct elf_image *image, const struct elf_function *function,
			uint64_t *ret_offsets, int max);

#endif
