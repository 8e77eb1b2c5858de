/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line for each block (--blocks), and the path that leads to one block (--why). */
#ifndef LEAKTOOLS_SCAN_BLOCK_LINES_H
#define LEAKTOOLS_SCAN_BLOCK_LINES_H

#include "scan/report/holder_text.h"

/*
 * Writes "CLASS SIZE 0xADDRESS HOLDER..." for each block in use, by address. With @without_held,
 * those that are held are left out, and comments say where they are: "# stopped SECONDS" is when
 * the process was stopped, "# no block is called lost: REASON" why that is so, "# not seen:
 * PLACES" where a pointer to a lost block may be, "# heap SIZE 0xADDRESS" a part of the memory that
 * holds blocks and was read as a whole, and others what leads to them (holders.h).
 */
void block_lines_write(FILE *out, struct scan_report *report, bool without_held);

/* Writes how the process gets to the block that holds @address. Returns 0, or -ENOENT, reported. */
int block_path_write(FILE *out, struct scan_report *report, uint64_t address);

#endif
