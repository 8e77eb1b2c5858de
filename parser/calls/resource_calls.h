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

#include "common/schema/resource_schema.h"
#include "parser/calls/heap_calls.h"
#include "parser/statistics/ref_counts.h"

/* User space ends below 2^57 on all machines; descriptors are small numbers. */
static inline uint64_t resource_key(const struct resource_kind *kind, uint64_t handle)
{
	return handle ^ (uint64_t)kind->number << 57;
}

/* The address or handle that @key of a block made by @schema stands for. */
static inline uint64_t resource_handle(const struct probe_schema *schema, uint64_t key)
{
	const struct resource_call *call = resource_call_of(schema);

	return call ? resource_key(call->kind, key) : key;
}

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
int resource_calls_take(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			const struct perf_sample *sample, uint32_t stack_id);

#endif
