/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions within their namespaces and classes, for those that have no linkage name:
 * functions in an unnamed namespace, lambdas, methods of local classes. DWARF entries do not tell
 * what they lie in, so it is noted while a unit is walked through.
 */
#ifndef LEAKTOOLS_UNWIND_SCOPE_NAMES_H
#define LEAKTOOLS_UNWIND_SCOPE_NAMES_H

#include "common/hash.h"

#include <elfutils/libdw.h>
#include <stddef.h>

#define SCOPE_NAMES_MAX                                                                            \
	(1u << 22) /* entries of a module; functions beyond have their bare names                  \
		    */

struct scope_parent {
	Dwarf_Off die, parent;
};

struct scope_name;

struct scope_names {
	struct scope_parent *parents;
	size_t nr, capacity, nr_sorted;
	Dwarf *dwarf;		  /* whose .debug_info they are offsets in */
	struct scope_name *names; /* that were asked for */
};

void scope_names_deinit(struct scope_names *names);

/* Notes that @die, a function or what holds functions, lies in @parent. Returns 0 or -ENOMEM. */
int scope_names_note(struct scope_names *names, Dwarf_Die *die, Dwarf_Die *parent);

/*
 * The name of the function @die with its namespaces and classes, which lives as long as @names.
 * NULL: it has none, or memory ran out.
 */
const char *scope_names_find(struct scope_names *names, Dwarf_Die *die);

#endif
