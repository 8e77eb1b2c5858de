/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A module's functions, sorted by address. A lookup finds the function that is known to hold the
 * address, or none; never a neighbour that merely comes before it.
 */
#ifndef LEAKTOOLS_UNWIND_SYMBOL_TABLE_H
#define LEAKTOOLS_UNWIND_SYMBOL_TABLE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	uint64_t start, end;  /* [start, end) */
	uint64_t highest_end; /* of all sized symbols up to this one */
	const char *mangled;  /* in the file's string table */
	char *name;	      /* demangled; NULL: not asked for yet */
	uint8_t binding;      /* STB_* */
	bool sized;	      /* false: @end is its section's */
};

struct symbol_table {
	struct symbol *symbols;
	size_t nr;
};

/*
 * Reads the functions of @module, its debug file and its MiniDebugInfo. Addresses are biased as
 * libdwfl's are. @module keeps owning the names. Returns 0 or -ENOMEM.
 */
int symbol_table_init(struct symbol_table *table, Dwfl_Module *module);
void symbol_table_deinit(struct symbol_table *table);

/* The function that holds @address, or NULL. */
struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

/* The symbol's demangled name; NULL: out of memory. */
const char *symbol_name(struct symbol *symbol);

#endif
