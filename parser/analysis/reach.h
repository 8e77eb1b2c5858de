/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leakscan has said of the blocks of a recording (leakrec:reach, of leakrec --scan). It is
 * evidence of its own: it does not depend on how blocks came and went.
 */
#ifndef LEAKTOOLS_PARSER_REACH_H
#define LEAKTOOLS_PARSER_REACH_H

#include "common/schema/reach_class.h"
#include "parser/heap/heap_block.h"
#include "parser/records/perf_event_types.h"

struct reach;

/* NULL: out of memory. */
struct reach *reach_create(void);
void reach_destroy(struct reach *reach);

/* Adds a sample of leakrec:reach; one that is malformed is left out. Returns 0 or -ENOMEM. */
int reach_add(struct reach *reach, const struct perf_sample *sample);

/*
 * What was said of @block, which is held where the recording ends. REACH_NOT_SCANNED: nothing, as
 * it was allocated after the scan, in another process, or outside of the heaps that were scanned;
 * or the scan had another block there. Sorts what was added when it is first called.
 */
enum reach_class reach_of(struct reach *reach, const struct heap_block *block);

/* True if anything was scanned. */
bool reach_has_any(const struct reach *reach);

#endif
