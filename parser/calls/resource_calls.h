/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one thread's calls do to resources other than memory (common/schema/resource_schema.h):
 * pairs entries with returns, gives and takes, counts references.
 *
 * What is held stands in the heap of the process (heap_model.h) among its blocks, so that forks and
 * exits are followed alike. It is told from them by its address there, resource_key(): the handle 3
 * of one kind is neither the handle 3 of another nor a block at address 3. Who is shown a block
 * sees the handle.
 */
#ifndef LEAKTOOLS_PARSER_RESOURCE_CALLS_H
#define LEAKTOOLS_PARSER_RESOURCE_CALLS_H

#include "parser/calls/heap_sink.h"
#include "parser/heap/resource_key.h"

/* An event, and where it happens. */
struct resource_step {
	struct heap_sink *sink;
	const struct perf_sample *sample;
	struct thread *thread;
	struct heap *heap;
	const struct resource_call *call;
	struct heap_op op;
};

/* What is counted of the step's kind. */
struct resource_counts *resource_counts_of(const struct resource_step *step);

/*
 * @handle begins to be held, respectively is held no more: the heap is changed, and the sink is
 * told. Return 0 or -ENOMEM.
 */
int resource_give(const struct resource_step *step, uint64_t handle, uint64_t size_bytes);
int resource_release(const struct resource_step *step, uint64_t handle);

/*
 * Takes the next event of @thread, whose schema is a resource's. Returns 0 or -ENOMEM.
 */
int resource_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			  const struct perf_sample *sample, uint32_t stack_id);

#endif
