/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an x86-64 function goes to: the functions that it jumps to or calls, and those whose
 * addresses it loads. The file is hostile. Where code is not decoded there are none.
 */
#ifndef LEAKTOOLS_PROBES_CODE_TARGETS_H
#define LEAKTOOLS_PROBES_CODE_TARGETS_H

#include "probes/elf/elf_image.h"

#include "common/schema/probe_symbols.h"

/* A place outside of the function. */
struct code_target {
	uint64_t offset;    /* in the file; if @symbol is NULL */
	const char *symbol; /* that a PLT stub leads to, by the file's relocations */
};

/* The symbol that a relocation fills the pointer at @address with. False: there is none. */
bool code_target_of_slot(const struct elf_image *image, uint64_t address,
			 char ret[static PROBE_SYMBOL_MAX]);

/* Sees a target; returns true to end the search. */
typedef bool code_target_visit(void *context, const struct code_target *target);

/*
 * Visits what @function jumps to or calls; with @only_first only where it is a mere jump. Returns 1
 * if @visit ended the search, 0 if not, or -ENOMEM.
 */
int code_targets_visit(const struct elf_image *image, const struct elf_function *function,
		       bool only_first, code_target_visit *visit, void *context);

/*
 * The places in the file's code whose addresses @function loads, each once, at most @max. Returns
 * how many, or -ENOMEM.
 */
int code_targets_loaded(const struct elf_image *image, const struct elf_function *function,
			uint64_t *ret_offsets, int max);

#endif
