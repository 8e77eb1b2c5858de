/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the samples leakrec:calls: finds out which call of which module they are about. */
#ifndef LEAKTOOLS_PARSER_COUNTED_CALLS_H
#define LEAKTOOLS_PARSER_COUNTED_CALLS_H

#include "parser/records/perf_event_types.h"
#include "parser/windows/call_counts.h"
#include "unwind/stacks/stack_store.h"

#define COUNTED_CALL_FRAME 1 /* of a call_id: the call */

/*
 * Adds the sample to @counts. Its call_id is that of a stack whose outermost frame,
 * COUNTED_CALL_FRAME, is the call. @start_ns is when the recording began. Returns 0 or -ENOMEM.
 */
int counted_calls_add(struct call_counts *counts, struct stack_store *stacks,
		      const struct perf_sample *sample, uint64_t start_ns);

#endif
