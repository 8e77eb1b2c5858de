/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a scan says of the blocks that a recording holds at its end. Nobody saw what the process did
 * in between: a block at the same address, of about the same size, may be a later one.
 */
#ifndef LEAKTOOLS_SCAN_RECORDED_BLOCKS_H
#define LEAKTOOLS_SCAN_RECORDED_BLOCKS_H

#include "parser/analysis/analysis.h"
#include "scan/report/holder_text.h"

/* The blocks of process @pid. Returns 0 or -ENOMEM. The caller frees @ret->blocks. */
int recorded_blocks_list(struct analysis *analysis, pid_t pid, struct traced_blocks *ret);

/*
 * Stores in @analysis->reach what the scan says, in place of what the recording's own scan has
 * said. Returns 0 or -ENOMEM.
 */
int recorded_blocks_ask(struct analysis *analysis, struct scan_report *report);

#endif
