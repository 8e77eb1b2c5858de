/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/resource_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A call that was entered and has not returned. */
struct pending_call {
	const struct resource_call *call;
	uint64_t caller; /* 0: not known */
	uint64_t probe_address;
	uint64_t args[PROBE_MAX_ARGS];
	/* The last handle of this kind that an inner call gave. The outer call may pass it on. */
	bool inner_gave;
	uint64_t inner_handle;
};

struct resource_thread {
	struct pending_call pending[CALL_MAX_DEPTH]; /* outermost first */
	int depth;
	/* What the thread took last, and where: a taking function may call another one. */
	uint64_t taken_key, taken_probe;
};

struct resource_counts *resource_counts_of(const struct resource_step *step)
{
	struct resource_counts *counts = &step->sink->resources[step->call->kind->number - 1];

	counts->kind = step->call->kind;
	return counts;
}

static void emit(const struct resource_step *step, bool enters, const struct heap_block *block,
		 const struct heap_op *release)
{
	struct heap_block shown = *block;

	shown.address = resource_handle(block->allocated.schema, block->address);
	heap_sink_tell_release(step->sink, enters, &shown, &step->op, release);
}

static int note_anomaly(const struct resource_step *step, enum heap_anomaly_kind kind,
			uint64_t handle, const struct heap_block *block,
			const struct heap_op *released)
{
	struct heap_anomaly anomaly = {.kind = kind, .address = handle, .op = step->op};

	if (block)
		anomaly.block = *block;
	anomaly.block.address = handle;
	if (released)
		anomaly.released = *released;
	return heap_anomalies_add_final(&step->sink->anomalies, &anomaly);
}

/* The handle was held: its release was missed. */
static int displace(const struct resource_step *step, uint64_t handle,
		    const struct heap_block *previous)
{
	const struct site_block site_block = site_block_of(previous);
	int err;

	emit(step, false, previous, NULL);
	/* An inherited handle is the parent's, which may still hold it. */
	if (previous->inherited)
		return 0;
	err = site_stats_vanish(step->sink->sites, &site_block, step->op.time_ns);
	return err ? err : note_anomaly(step, ANOMALY_STILL_HELD, handle, previous, NULL);
}

int resource_give(const struct resource_step *step, uint64_t handle, uint64_t size_bytes)
{
	struct heap_block previous, block = {
					    .address = resource_key(step->call->kind, handle),
					    .size_bytes = size_bytes,
					    .size_known = true,
					    .allocated = step->op,
				    };
	struct site_block site_block;
	int result = heap_alloc(step->heap, &block, &previous);

	if (result == HEAP_STILL_HELD)
		result = displace(step, handle, &previous);
	if (result < 0)
		return result;
	resource_counts_of(step)->gives++;
	emit(step, true, &block, NULL);
	site_block = site_block_of(&block);
	return site_stats_enter(step->sink->sites, &site_block);
}

int resource_release(const struct resource_step *step, uint64_t handle)
{
	uint64_t key = resource_key(step->call->kind, handle);
	struct heap_block block;
	struct heap_op released;
	int result = heap_release(step->heap, key, &step->op, &block, &released);

	if (result < 0)
		return result;
	if (result == HEAP_OK) {
		const struct site_block site_block = site_block_of(&block);

		resource_counts_of(step)->takes++;
		emit(step, false, &block, &step->op);
		return block.inherited
			       ? 0
			       : site_stats_leave(step->sink->sites, &site_block, step->op.time_ns);
	}
	if (result == HEAP_UNKNOWN) {
		resource_counts_of(step)->unknown_takes++;
		return note_anomaly(step, ANOMALY_FREE_UNKNOWN, handle, NULL, NULL);
	}
	return note_anomaly(step, ANOMALY_DOUBLE_FREE, handle, &block, &released);
}

/* True if this call comes from the function that took the same handle. */
static bool is_taken_within(const struct resource_thread *own, uint64_t key,
			    const struct perf_sample *sample)
{
	return own->taken_probe && own->taken_key == key &&
	       own->taken_probe != sample->probe_address && sample->caller &&
	       call_is_near(sample->caller, own->taken_probe);
}

static int release_once(const struct resource_step *step, uint64_t handle)
{
	struct resource_thread *own = step->thread->resources;
	uint64_t key = resource_key(step->call->kind, handle);

	/* Like free(NULL), unless 0 is a valid handle. */
	if (handle == 0 && !heap_find(step->heap, key))
		return 0;
	if (is_taken_within(own, key, step->sample) && !heap_find(step->heap, key))
		return 0;
	own->taken_key = key;
	own->taken_probe = step->sample->probe_address;
	return resource_release(step, handle);
}

static int change_refs(const struct resource_step *step, uint64_t handle, int change,
		       uint64_t *ret_count)
{
	return ref_counts_change(step->sink->refs, step->op.pid,
				 resource_key(step->call->kind, handle), change, step->op.stack_id,
				 step->op.schema, ret_count);
}

/* True for a held object whose references are counted. */
static bool is_counted(const struct resource_step *step, uint64_t handle)
{
	uint64_t key = resource_key(step->call->kind, handle);

	return heap_find(step->heap, key) && ref_counts_find(step->sink->refs, step->op.pid, key);
}

/* A forked child's references to an inherited object are not its parent's. */
static bool is_inherited(const struct resource_step *step, uint64_t handle)
{
	const struct heap_block *block =
		heap_find(step->heap, resource_key(step->call->kind, handle));

	return block && block->inherited;
}

static int add_ref(const struct resource_step *step, uint64_t handle, bool is_new,
		   uint64_t size_bytes)
{
	bool is_first = is_new || !is_counted(step, handle);
	uint64_t count;
	int err;

	if (!is_new && is_inherited(step, handle))
		return 0;
	/* These are references to an earlier object at that address. */
	if (is_first)
		ref_counts_remove(step->sink->refs, step->op.pid,
				  resource_key(step->call->kind, handle));
	err = change_refs(step, handle, 1, &count);
	resource_counts_of(step)->refs++;
	return err || !is_first ? err : resource_give(step, handle, size_bytes);
}

static int drop_ref(const struct resource_step *step, uint64_t handle)
{
	uint64_t count;
	int err;

	if (is_inherited(step, handle))
		return 0;
	resource_counts_of(step)->unrefs++;
	if (!is_counted(step, handle))
		return resource_release(step, handle);
	err = change_refs(step, handle, -1, &count);
	if (err || count)
		return err;
	ref_counts_remove(step->sink->refs, step->op.pid, resource_key(step->call->kind, handle));
	return resource_release(step, handle);
}

/* Tells the calls around this one. */
static void tell_outer(const struct resource_step *step, uint64_t handle)
{
	struct resource_thread *own = step->thread->resources;

	own->taken_probe = 0;
	for (int i = 0; i < own->depth; i++) {
		struct pending_call *outer = &own->pending[i];

		if (outer->call->kind != step->call->kind)
			continue;
		outer->inner_gave = true;
		outer->inner_handle = handle;
	}
}

/* Applies a call that has succeeded. */
static int apply(const struct resource_step *step, uint64_t handle, uint64_t size_bytes)
{
	switch (step->call->role) {
	case RESOURCE_GIVE:
		tell_outer(step, handle);
		return resource_give(step, handle, size_bytes);
	case RESOURCE_NEW:
		tell_outer(step, handle);
		return add_ref(step, handle, true, size_bytes);
	case RESOURCE_REF:
		return add_ref(step, handle, false, size_bytes);
	case RESOURCE_TAKE:
		return release_once(step, handle);
	case RESOURCE_UNREF:
		return handle ? drop_ref(step, handle) : 0;
	default:
		return 0;
	}
}

static void enter_call(const struct resource_step *step)
{
	struct resource_thread *own = step->thread->resources;
	struct pending_call *pending;

	/* Calls do not nest so deep: these ended by longjmp(), or lost their returns. */
	if (own->depth == CALL_MAX_DEPTH) {
		own->depth--;
		memmove(&own->pending[0], &own->pending[1],
			(size_t)own->depth * sizeof(own->pending[0]));
		resource_counts_of(step)->unpaired++;
	}
	pending = &own->pending[own->depth++];
	*pending = (struct pending_call){
		.call = step->call,
		.caller = call_caller_of(step->sample),
		.probe_address = step->sample->probe_address,
	};
	memcpy(pending->args, step->sample->args, sizeof(pending->args));
}

/* Finds the call that returns. Returns its index or -1. An exit may belong to another function. */
static int match_call(const struct resource_step *step)
{
	const struct perf_sample *sample = step->sample;
	const struct resource_thread *own = step->thread->resources;
	uint64_t return_address = call_return_of(sample);

	for (int i = own->depth - 1; i >= 0; i--) {
		const struct pending_call *call = &own->pending[i];

		if (call->call != step->call)
			continue;
		if (sample->event->point == PROBE_EXIT
			    ? call->probe_address == sample->probe_address &&
				      call_exit_may_end(call->caller, return_address,
							i == own->depth - 1)
			    : !call->caller || !return_address || call->caller == return_address)
			return i;
	}
	return -1;
}

/* Pops the call that returns, and the calls inside it, which have ended, too. */
static bool leave_call(const struct resource_step *step, struct pending_call *ret)
{
	struct resource_thread *own = step->thread->resources;
	int index = match_call(step);

	if (index >= 0) {
		*ret = own->pending[index];
		resource_counts_of(step)->unpaired += (uint64_t)(own->depth - 1 - index);
		own->depth = index;
		return true;
	}
	*ret = (struct pending_call){.call = step->call};
	return false;
}

static int return_from_call(const struct resource_step *step)
{
	const struct perf_sample *sample = step->sample;
	struct pending_call pending;
	bool entry_seen = leave_call(step, &pending);
	uint64_t handle = pending.args[0], key;

	if (step->call->place == RESOURCE_RETURNED)
		handle = sample->ret;
	else if (step->call->place == RESOURCE_STORED)
		handle = sample->block;
	else if (!entry_seen) {
		resource_counts_of(step)->unpaired++;
		return 0;
	}
	if (resource_call_failed(step->call, sample->ret, handle)) {
		resource_counts_of(step)->failures++;
		return 0;
	}
	/* It passes on a handle that an inner call gave. */
	key = resource_key(step->call->kind, handle);
	if (pending.inner_gave && pending.inner_handle == handle && heap_find(step->heap, key))
		return 0;
	return apply(step, handle, pending.args[1]);
}

int resource_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			  const struct perf_sample *sample, uint32_t stack_id)
{
	const struct resource_step step = {
		.sink = sink,
		.sample = sample,
		.thread = thread,
		.heap = heap,
		/* As resource_call_of(). Static analysers do not know that this is a resource's. */
		.call = (const struct resource_call *)sample->event->schema,
		.op = heap_op_of(thread, sample, sample->event->schema, stack_id),
	};

	if (sample->event->point == PROBE_EXIT && (!thread->resources || match_call(&step) < 0))
		return 0;
	sink->stats.events++;
	if (!thread->resources)
		thread->resources = calloc(1, sizeof(*thread->resources));
	if (!sink->refs)
		sink->refs = ref_counts_create();
	if (!thread->resources || !sink->refs)
		return -ENOMEM;
	if (probe_point_is_return(sample->event->point))
		return return_from_call(&step);
	if (step.call->has_return) {
		enter_call(&step);
		return 0;
	}
	if (sample->args[0] == 0 && step.call->role != RESOURCE_TAKE)
		return 0;
	return apply(&step, sample->args[0], sample->args[1]);
}
