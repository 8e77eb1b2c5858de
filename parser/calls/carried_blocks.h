/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that were allocated before what is left of a recording in segments (docs/segments.md).
 * They enter their heap with the time of their allocation. Statistics count them as if they had
 * been allocated where the first period begins (site_stats.h): of the others that were allocated
 * before, and released, nothing is known.
 */
#ifndef LEAKTOOLS_PARSER_CARRIED_BLOCKS_H
#define LEAKTOOLS_PARSER_CARRIED_BLOCKS_H

#include "parser/calls/heap_sink.h"

/* Adds the blocks of @sample (leakrec:held) to @heap of @process. Returns 0 or -ENOMEM. */
int carried_blocks_add(struct heap_sink *sink, const struct process *process, struct heap *heap,
		       const struct perf_sample *sample, uint32_t stack_id);

#endif
