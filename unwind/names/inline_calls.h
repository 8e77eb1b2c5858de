/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions are inlined at an address, and where they were called, from DWARF. A unit's
 * functions are listed when the first address in it is asked for: libdw would walk through the unit
 * anew for each address.
 */
#ifndef LEAKTOOLS_UNWIND_INLINE_CALLS_H
#define LEAKTOOLS_UNWIND_INLINE_CALLS_H

#include "common/hash.h"
#include "unwind/names/scope_names.h"

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE_CALLS_MAX 64 /* at one address; what is inlined deeper is left out */

/* A function whose code holds an address. Strings live as long as the DWARF and the inline_calls.
 */
struct inline_function {
	const char *name;      /* mangled, or else with its namespaces; NULL: not known */
	uint64_t start;	       /* of the piece of its code that holds the address */
	const char *call_file; /* where it was called; NULL: not known, or not inlined */
	int call_line;
};

/* The functions at an address, outermost first: functions[0] is none that was inlined. */
struct inline_stack {
	struct inline_function functions[1 + INLINE_CALLS_MAX];
	size_t nr; /* 0: no function is known there */
};

struct unit_functions;

struct inline_calls {
	struct unit_functions *units;
	struct scope_names scope_names;
	uint64_t nr_entries; /* of .debug_info, that were looked at so far */
};

void inline_calls_deinit(struct inline_calls *calls);

/*
 * The functions at @address in @unit, whose addresses are @bias below those that @address and @ret
 * are among. Returns 0 or -ENOMEM.
 */
int inline_calls_find(struct inline_calls *calls, Dwarf_Die *unit, uint64_t bias, uint64_t address,
		      struct inline_stack *ret);

#endif
