/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds, in the DWARF, the functions that are inlined at an address, and where they were called.
 * Lists a unit's functions at the first address in it, because libdw would walk through the unit
 * again for each address.
 */
#ifndef LEAKTOOLS_UNWIND_INLINE_CALLS_H
#define LEAKTOOLS_UNWIND_INLINE_CALLS_H

#include "common/hash.h"
#include "unwind/names/scope_names.h"

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE_CALLS_MAX 64 /* at one address; deeper ones are left out */

/* A function whose code holds an address. Strings live as long as the DWARF and the inline_calls.
 */
struct inline_function {
	const char *name;      /* mangled, or with its namespaces; NULL: not known */
	uint64_t start;	       /* start of the range of its code that holds the address */
	const char *call_file; /* where it was called; NULL: not known, or not inlined */
	int call_line;
};

/* The functions at an address, outermost first. functions[0] is not inlined. */
struct inline_stack {
	struct inline_function functions[1 + INLINE_CALLS_MAX];
	size_t nr; /* 0: no known function */
};

struct unit_functions;

struct inline_calls {
	struct unit_functions *units;
	struct scope_names scope_names;
	uint64_t nr_entries; /* entries of .debug_info that were visited so far */
};

void inline_calls_deinit(struct inline_calls *calls);

/*
 * Finds the functions at @address in @unit. @bias is the difference between those addresses and the
 * DWARF's. Returns 0 or -ENOMEM.
 */
int inline_calls_find(struct inline_calls *calls, Dwarf_Die *unit, uint64_t bias, uint64_t address,
		      struct inline_stack *ret);

#endif
