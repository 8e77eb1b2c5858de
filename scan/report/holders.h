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

/*
 * The largest holders of the blocks @blocks (HEAP_NONE: none), for a caller that asks about some
 * only. @on_name gets each one's number, from 1 on, and name; if it returns not 0, that is
 * returned.
 * @ret_numbers[i] is the number for @blocks[i], or 0. Returns 0 or -ENOMEM.
 */
int holders_name(struct scan_report *report, const uint32_t *blocks, size_t nr,
		 int (*on_name)(void *context, unsigned number, const char *name), void *context,
		 unsigned *ret_numbers);

#endif
