/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line for each block (--blocks), and the path that leads to one block (--why). */
#ifndef LEAKTOOLS_SCAN_BLOCK_LINES_H
#define LEAKTOOLS_SCAN_BLOCK_LINES_H

#include "scan/report/holder_text.h"

/* Writes "CLASS SIZE 0xADDRESS HOLDER..." for each block in use, by address. */
void block_lines_write(FILE *out, struct scan_report *report);

/* Writes how the process gets to the block that holds @address. Returns 0, or -ENOENT, reported. */
int block_path_write(FILE *out, struct scan_report *report, uint64_t address);

#endif
