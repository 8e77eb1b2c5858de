/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One probe event of an allocator's function on its way to the heap. heap_calls.c makes a step for
 * each event; heap_calls.c and heap_releases.c apply it.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_STEP_H
#define LEAKTOOLS_PARSER_HEAP_STEP_H

#include "parser/calls/heap_sink.h"

struct heap_step {
	struct heap_sink *sink;
	const struct perf_sample *sample;
	struct thread *thread;
	struct heap *heap;	     /* of the thread's process */
	struct heap_op op;	     /* the event as an operation */
	uint64_t caller;	     /* the return address of the call; 0: not known */
	struct last_return previous; /* the result of the thread's previous event */
	bool is_first;		     /* the thread's first event */
};

/*
 * Adds an anomaly of this event that may be withdrawn later, linked to @previous (an index, or
 * ANOMALY_NONE). Returns 0 or -ENOMEM.
 */
static inline int heap_step_note_anomaly(struct heap_step *step, const struct heap_anomaly *anomaly,
					 size_t previous, size_t *ret_index)
{
	return heap_anomalies_add(&step->sink->anomalies, anomaly, step->caller, previous,
				  ret_index);
}

/*
 * Tells that a block is not held any more; if @is_release, because @op has released it. If its
 * beginning was not shown yet, that comes first.
 */
static inline void heap_step_tell_leave(struct heap_sink *sink, const struct heap_block *block,
					const struct heap_op *op, bool is_release)
{
	if (block->provisional)
		heap_sink_tell(sink, true, block, &block->allocated);
	heap_sink_tell_release(sink, false, block, op, is_release ? op : NULL);
}

#endif
