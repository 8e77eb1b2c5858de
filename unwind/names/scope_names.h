/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Qualified names of functions without a linkage name: functions in an unnamed namespace, lambdas,
 * methods of local classes. DWARF entries do not refer to their parents, so these are noted while a
 * unit is walked.
 */
#ifndef LEAKTOOLS_UNWIND_SCOPE_NAMES_H
#define LEAKTOOLS_UNWIND_SCOPE_NAMES_H

#include "common/hash.h"

#include <elfutils/libdw.h>
#include <stddef.h>

#define SCOPE_NAMES_MAX (1u << 22) /* entries of a module; later functions keep bare names */

struct scope_parent {
	Dwarf_Off die, parent;
};

struct scope_name;

struct scope_names {
	struct scope_parent *parents;
	size_t nr, capacity, nr_sorted;
	Dwarf *dwarf;		  /* the offsets are in its .debug_info */
	struct scope_name *names; /* names asked for so far */
};

void scope_names_deinit(struct scope_names *names);

/* Notes that @die, a function or a scope of functions, lies in @parent. Returns 0 or -ENOMEM. */
int scope_names_note(struct scope_names *names, Dwarf_Die *die, Dwarf_Die *parent);

/*
 * The qualified name of the function @die; valid as long as @names. NULL: it has none, or memory
 * ran out.
 */
const char *scope_names_find(struct scope_names *names, Dwarf_Die *die);

#endif
