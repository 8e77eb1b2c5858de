/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one thread's calls do to a heap: takes the probe events of a thread, pairs them
 * (call_pairing.h), changes the heap (heap_model.h), and tells the sink what came of it: counts,
 * anomalies, and the changes that an observer is shown.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_CALLS_H
#define LEAKTOOLS_PARSER_HEAP_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Takes the next event of @thread, whose process has @heap. The event's schema must be set. Returns
 * 0 or -ENOMEM.
 */
int heap_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
		      const struct perf_sample *sample, uint32_t stack_id);

/* Gives up on the calls that @thread has open: they will not return any more, and @end is why. */
void heap_calls_abandon(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			enum entry_end end);

#endif
