/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The results of all threads' calls: counts, anomalies, and the changes shown to an observer. */
#ifndef LEAKTOOLS_PARSER_HEAP_SINK_H
#define LEAKTOOLS_PARSER_HEAP_SINK_H

#include "common/size_range.h"
#include "parser/calls/tracker_types.h"
#include "parser/processes/process_table.h"
#include "parser/statistics/ref_counts.h"
#include "parser/statistics/site_stats.h"
#include "parser/windows/followed_blocks.h"
#include "parser/windows/observed_time.h"

/* A recording in windows (window_calls.h); zero: all time is observed. */
struct window_sink {
	struct observed_time time;
	struct followed_blocks blocks;
	uint64_t since_ns; /* older blocks are of earlier windows */
	uint64_t end_ns;   /* the last time at which leakrec is known to have recorded */
};

struct heap_sink {
	struct heap_observer observer;
	struct heap_losses losses;
	struct size_range sizes; /* of the recorded blocks, if there is a limit */
	bool has_sizes;
	struct heap_anomalies anomalies;
	struct heap_tracker_stats stats;
	struct site_stats *sites;
	struct resource_counts resources[RESOURCE_MAX_KINDS]; /* by number - 1 */
	struct ref_counts *refs;			      /* NULL: none counted yet */
	struct window_sink windows;
};

/* True if the block outlived its window: its end may have gone unseen. */
static inline bool heap_sink_is_earlier(const struct heap_sink *sink,
					const struct heap_block *block)
{
	return block->allocated.time_ns < sink->windows.since_ns;
}

/*
 * The operation of an event: a call of @schema's function by @thread, in the process that owns the
 * memory.
 */
static inline struct heap_op heap_op_of(const struct thread *thread,
					const struct perf_sample *sample,
					const struct probe_schema *schema, uint32_t stack_id)
{
	return (struct heap_op){
		.time_ns = sample->origin.time_ns,
		.sequence = sample->origin.sequence,
		.pid = thread->process->heap_pid,
		.tid = sample->origin.tid,
		.stack_id = stack_id,
		.schema = schema,
	};
}

static inline struct site_block site_block_of(const struct heap_block *block)
{
	return (struct site_block){
		.stack_id = block->allocated.stack_id,
		.size_bytes = block->size_bytes,
		.time_ns = block->allocated.time_ns,
	};
}

static inline bool heap_sink_may_miss(const struct heap_sink *sink, uint64_t from_ns,
				      uint64_t to_ns)
{
	return sink->losses.may_miss && sink->losses.may_miss(sink->losses.context, from_ns, to_ns);
}

/* The rest of heap_sink_tell_release(), which runs only if there is an observer. */
void heap_sink_tell_observer(struct heap_sink *sink, bool enters, const struct heap_block *block,
			     const struct heap_op *op, const struct heap_op *release);

/*
 * Tells the observer, if it wants the kind, that @op begins (@enters) or ends the holding of
 * @block. @release: heap_change.release.
 */
static inline void heap_sink_tell_release(struct heap_sink *sink, bool enters,
					  const struct heap_block *block, const struct heap_op *op,
					  const struct heap_op *release)
{
	if (sink->observer.on_change && !block->inherited)
		heap_sink_tell_observer(sink, enters, block, op, release);
}

/* The same, if no call has released the block. */
static inline void heap_sink_tell(struct heap_sink *sink, bool enters,
				  const struct heap_block *block, const struct heap_op *op)
{
	heap_sink_tell_release(sink, enters, block, op, NULL);
}

#endif
