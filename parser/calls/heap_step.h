/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One probe event of an allocator's function on its way to the heap. */
#ifndef LEAKTOOLS_PARSER_HEAP_STEP_H
#define LEAKTOOLS_PARSER_HEAP_STEP_H

#include "parser/calls/heap_sink.h"

struct heap_step {
	struct heap_sink *sink;
	const struct perf_sample *sample;
	struct thread *thread;
	struct heap *heap;
	struct heap_op op;
	uint64_t caller; /* 0: not known */
	struct last_return previous;
	bool is_first; /* the thread's first event */
};

static inline int heap_step_note_anomaly(struct heap_step *step, const struct heap_anomaly *anomaly,
					 size_t previous, size_t *ret_index)
{
	return heap_anomalies_add(&step->sink->anomalies, anomaly, step->caller, previous,
				  ret_index);
}

/* Tells that a block is not held any more. If its beginning was not shown yet, that comes first. */
static inline void heap_step_tell_leave(struct heap_sink *sink, const struct heap_block *block,
					const struct heap_op *op)
{
	if (block->provisional)
		heap_sink_tell(sink, true, block, &block->allocated);
	heap_sink_tell(sink, false, block, op);
}

#endif
