/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leads to the held blocks, by variable, stack and so on (docs/reachability.md, "Holders").
 * Of a large heap, only some blocks are listed.
 */
#ifndef LEAKTOOLS_SCAN_HOLDERS_H
#define LEAKTOOLS_SCAN_HOLDERS_H

#include "scan/report/holder_text.h"

#define HOLDERS_MAX	  256	/* that have a name */
#define HOLDERS_MAX_LINES 16384 /* about blocks */

/*
 * Writes "# holder NR NAME..." for each of the largest holders, from 1 on, then "# held NR SIZE
 * 0xADDRESS": the blocks that are held and begin in these bytes have that holder; 0: another one,
 * or none is known. Warns if memory runs out.
 */
void holders_write(FILE *out, struct scan_report *report);

#endif
