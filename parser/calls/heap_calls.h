/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applies one thread's calls to a heap: pairs its probe events (call_pairing.h), changes the heap
 * (heap_model.h), and reports counts, anomalies and changes to the sink.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_CALLS_H
#define LEAKTOOLS_PARSER_HEAP_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Handles the next event of @thread, whose process has @heap. The event's schema must be set.
 * Returns 0 or -ENOMEM.
 */
int heap_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
		      const struct perf_sample *sample, uint32_t stack_id);

/* Gives up the open calls of @thread, which will not return. @end is the reason. */
void heap_calls_abandon(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			enum entry_end end);

#endif
