/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applies one thread's calls to resources other than memory (common/schema/resource_schema.h):
 * pairs entries with returns, gives and takes, counts references.
 *
 * Held resources are stored in the heap of the process (heap_model.h) among its blocks, so that
 * forks and exits need no code of their own. Their addresses there are keys (resource_key.h). An
 * observer sees handles.
 */
#ifndef LEAKTOOLS_PARSER_RESOURCE_CALLS_H
#define LEAKTOOLS_PARSER_RESOURCE_CALLS_H

#include "parser/calls/heap_sink.h"
#include "parser/heap/resource_key.h"

/* An event and its context. */
struct resource_step {
	struct heap_sink *sink;
	const struct perf_sample *sample;
	struct thread *thread;
	struct heap *heap;
	const struct resource_call *call;
	struct heap_op op;
};

/* The counts of the step's kind. */
struct resource_counts *resource_counts_of(const struct resource_step *step);

/* Hold or release @handle: change the heap and tell the sink. Return 0 or -ENOMEM. */
int resource_give(const struct resource_step *step, uint64_t handle, uint64_t size_bytes);
int resource_release(const struct resource_step *step, uint64_t handle);

/* Handles the next event of @thread, whose schema is a resource's. Returns 0 or -ENOMEM. */
int resource_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			  const struct perf_sample *sample, uint32_t stack_id);

#endif
