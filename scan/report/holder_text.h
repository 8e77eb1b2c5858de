/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of roots and holders, for all reports. Names of the process's are escaped. */
#ifndef LEAKTOOLS_SCAN_HOLDER_TEXT_H
#define LEAKTOOLS_SCAN_HOLDER_TEXT_H

#include "scan/analysis/scan.h"
#include "scan/names/module_symbols.h"
#include "scan/names/object_types.h"

#include <stdio.h>

/* What reports are made from. */
struct scan_report {
	const struct scan *scan;
	struct module_symbols *symbols;
	struct object_types types;
};

/*
 * Writes who holds the block, as one phrase: "block 0x55...", "libfoo.so.1 table+0x8", "stack of
 * thread 12, sp+0x40", "nothing"; and how, if its address is stored in another form. Blanks and
 * tabs in names are escaped.
 */
void holder_write(FILE *out, struct scan_report *report, uint32_t block);

/* The word of a root that holds the block first; false: another block does, or nothing. */
bool holder_find_root(const struct scan *scan, uint32_t block, uint64_t *ret_slot);

/* Writes what @slot, the number of a root's word, is. */
void holder_write_root(FILE *out, struct scan_report *report, uint64_t slot);

#endif
