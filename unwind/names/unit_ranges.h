/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the compilation unit that holds an address, from the units themselves. libdwfl uses only
 * .debug_aranges, which clang does not write.
 */
#ifndef LEAKTOOLS_UNWIND_UNIT_RANGES_H
#define LEAKTOOLS_UNWIND_UNIT_RANGES_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNIT_RANGES_MAX (1u << 20) /* of a module; the rest has no lines */

struct unit_range {
	uint64_t start, end; /* [start, end), biased as libdwfl's addresses are */
	Dwarf_Die *unit;
	Dwarf_Addr bias;
};

struct unit_ranges {
	struct unit_range *ranges; /* by @start */
	size_t nr, capacity;
};

/* Reads the units of @module, which keeps owning them. Returns 0 or -ENOMEM. */
int unit_ranges_init(struct unit_ranges *ranges, Dwfl_Module *module);
void unit_ranges_deinit(struct unit_ranges *ranges);

/* The range that holds @address, or NULL. */
const struct unit_range *unit_ranges_find(const struct unit_ranges *ranges, uint64_t address);

#endif
