/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/heap_calls.h"

#include "parser/calls/heap_releases.h"
#include "parser/calls/window_calls.h"

#include <errno.h>
#include <stdlib.h>

/* Settles blocks that were made inside @call but do not belong to it. */
static void settle_inner(struct heap_sink *sink, struct heap *heap, struct open_call *call)
{
	struct heap_block block;

	for (int i = 0; i < call->nr_inner; i++) {
		if (heap_settle(heap, call->inner[i].address, call->inner[i].sequence, &block))
			heap_sink_tell(sink, true, &block, &block.allocated);
	}
	call->nr_inner = 0;
}

/* Stops waiting for a call's return. */
static void abandon(struct heap_sink *sink, struct heap *heap, struct open_call *call,
		    enum entry_end end)
{
	settle_inner(sink, heap, call);
	sink->stats.entries[end]++;
	sink->stats.entries_without_return++;
}

static void abandon_top(struct heap_step *step, enum entry_end end)
{
	struct call_stack *calls = step->thread->calls;

	abandon(step->sink, step->heap, call_stack_top(calls), end);
	calls->depth--;
}

void heap_calls_abandon(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			enum entry_end end)
{
	struct call_stack *calls = thread->calls;

	while (calls && calls->depth > 0)
		abandon(sink, heap, &calls->calls[--calls->depth], end);
}

static uint64_t size_of_call(const struct open_call *call)
{
	const struct probe_schema *schema = call->schema;
	uint64_t size_bytes;

	if (schema->size_arg < 0)
		return 0;
	size_bytes = call->args[schema->size_arg];
	if (schema->count_arg >= 0 &&
	    __builtin_mul_overflow(size_bytes, call->args[schema->count_arg], &size_bytes))
		size_bytes = UINT64_MAX;
	return size_bytes;
}

static bool holds(const struct heap_block *block, uint64_t address)
{
	return address == block->address || address - block->address < block->size_bytes;
}

static void uncount(struct heap_sink *sink, const struct heap_block *block)
{
	const struct site_block site_block = site_block_of(block);

	sink->stats.allocations--;
	sink->stats.allocated_bytes -= block->size_bytes;
	if (!block->inherited)
		site_stats_withdraw(sink->sites, &site_block);
}

/*
 * A block that was made inside @call and holds @address, the result of @call, is @call's own block:
 * glibc's realloc(NULL, n) returns malloc()'s result, musl's aligned_alloc() an address inside
 * malloc()'s block. Other blocks made inside are the allocator's own, or were not made inside if
 * @call's return was lost and this return is another call's.
 */
static void withdraw_inner(struct heap_step *step, struct open_call *call, uint64_t address)
{
	struct heap_block block;

	for (int i = 0; i < call->nr_inner; i++) {
		const struct inner_block *inner = &call->inner[i];
		const struct heap_block *held = heap_find(step->heap, inner->address);

		if (!held || !holds(held, address) ||
		    !heap_withdraw(step->heap, inner->address, inner->sequence, &block))
			continue;
		uncount(step->sink, &block);
	}
	settle_inner(step->sink, step->heap, call);
}

/*
 * True if the thread's previous event is the return of a call inside this one, which is recorded
 * only at its return: a call of another probe, from this one's code or by a jump.
 */
static bool is_around_previous(const struct heap_step *step)
{
	const struct last_return *inner = &step->previous;
	const struct perf_sample *sample = step->sample;

	if (sample->event->point != PROBE_CALL || !inner->sequence || !sample->probe_address ||
	    !inner->probe_address || inner->probe_address == sample->probe_address)
		return false;
	return !inner->return_address || inner->return_address == sample->return_address ||
	       call_is_from(inner->return_address, sample->probe_address, sample->return_address);
}

/* As withdraw_inner(), for a block that was shown already. */
static void withdraw_previous(struct heap_step *step, uint64_t address)
{
	const struct heap_block *held = heap_find(step->heap, step->previous.address);
	struct heap_block block;

	if (!held || !holds(held, address) ||
	    !heap_withdraw(step->heap, held->address, step->previous.sequence, &block))
		return;
	uncount(step->sink, &block);
	if (!block.provisional)
		heap_sink_tell(step->sink, false, &block, &step->op);
}

static void note_return(struct heap_step *step, uint64_t address)
{
	step->thread->last_return = (struct last_return){
		.sequence = step->op.sequence,
		.probe_address = step->sample->probe_address,
		.return_address = step->sample->return_address,
		.address = address,
	};
}

/*
 * The open call from which this event's call was made, or NULL. A call with more inner calls than
 * any allocator makes has lost its return.
 */
static struct open_call *enclosing_call(struct heap_step *step)
{
	struct open_call *outer;

	while ((outer = call_stack_top(step->thread->calls))) {
		if (!call_is_inside(outer, step->caller))
			return NULL;
		if (outer->nr_inner < CALL_MAX_INNER)
			return outer;
		abandon_top(step, ENTRY_PUSHED_OUT);
	}
	return NULL;
}

static int note_still_held(struct heap_step *step, const struct heap_block *previous)
{
	struct heap_anomaly anomaly = {
		.kind = ANOMALY_STILL_HELD,
		.address = previous->address,
		.op = step->op,
		.block = *previous,
	};
	const struct site_block site_block = site_block_of(previous);
	int err;

	heap_step_tell_leave(step->sink, previous, &step->op, false);
	if (heap_sink_is_earlier(step->sink, previous))
		return previous->inherited ? 0 : window_calls_end(step->sink, previous, &step->op);
	/* An inherited block is the parent's, which may still hold it. */
	if (!previous->inherited) {
		err = site_stats_vanish(step->sink->sites, &site_block, step->op.time_ns);
		if (err)
			return err;
	}
	return heap_anomalies_add_final(&step->sink->anomalies, &anomaly);
}

/* @call, already off the stack, has returned a new block at @address. */
static int enter_block(struct heap_step *step, struct open_call *call, uint64_t address)
{
	struct heap_tracker_stats *stats = &step->sink->stats;
	struct open_call *outer;
	struct site_block site_block;
	struct heap_block previous, block = {
					    .address = address,
					    .size_bytes = size_of_call(call),
					    .size_known = call->entry_seen,
					    .allocated = step->op,
				    };
	int result;

	if (block.allocated.stack_id == STACK_NONE)
		block.allocated.stack_id = call->op.stack_id;
	block.inherited = step->sink->has_sizes && block.size_known &&
			  !size_range_has(&step->sink->sizes, block.size_bytes);
	withdraw_inner(step, call, address);
	if (is_around_previous(step))
		withdraw_previous(step, address);
	note_return(step, address);
	outer = enclosing_call(step);
	block.provisional = outer && call_add_inner(outer, address, block.allocated.sequence);
	result = heap_alloc(step->heap, &block, &previous);
	if (result == HEAP_STILL_HELD)
		result = note_still_held(step, &previous);
	if (result < 0)
		return result;
	stats->allocations++;
	stats->allocated_bytes += block.size_bytes;
	if (!block.provisional)
		heap_sink_tell(step->sink, true, &block, &block.allocated);
	step->thread->last_allocation = block.allocated.sequence;
	if (block.inherited)
		return 0;
	site_block = site_block_of(&block);
	return site_stats_enter(step->sink->sites, &site_block);
}

/* @call, already off the stack, has returned without a block. */
static int note_failure(struct heap_step *step, struct open_call *call)
{
	struct heap_anomaly anomaly = {
		.kind = ANOMALY_ALLOC_FAILED,
		.op = step->op,
		.block = {.size_bytes = size_of_call(call), .size_known = call->entry_seen},
	};
	struct open_call *outer;
	size_t index;
	int err;

	settle_inner(step->sink, step->heap, call);
	/*
	 * malloc(0) may return NULL; realloc(p, 0) frees and returns NULL. Without the entry the
	 * size is not known.
	 */
	if (call->schema->effect != HEAP_ALLOC_TO_PTR && call->entry_seen &&
	    size_of_call(call) == 0)
		return 0;
	if (call->schema->effect == HEAP_REALLOC) {
		if (!call->entry_seen)
			return 0;
		anomaly.address = call->args[call->schema->block_arg];
		err = heap_release_undo(step, call);
		if (err)
			return err;
	}
	note_return(step, 0);
	if (is_around_previous(step) && !step->previous.address)
		return 0; /* one failure, seen by two probes */
	if (anomaly.op.stack_id == STACK_NONE)
		anomaly.op.stack_id = call->op.stack_id;
	outer = enclosing_call(step);
	err = heap_step_note_anomaly(step, &anomaly, outer ? outer->inner_failure : ANOMALY_NONE,
				     &index);
	if (!err && outer)
		outer->inner_failure = index;
	return err;
}

/*
 * True if a call inside @call has shown which block @call returns, so that *memptr is not needed.
 */
static bool inner_is_held(const struct heap_step *step, const struct open_call *call)
{
	for (int i = 0; i < call->nr_inner; i++) {
		const struct heap_block *held = heap_find(step->heap, call->inner[i].address);

		if (held && held->allocated.sequence == call->inner[i].sequence)
			return true;
	}
	return false;
}

static int return_to_ptr(struct heap_step *step, struct open_call *call)
{
	const struct perf_sample *sample = step->sample;
	uint64_t address = call->stored_block;

	if ((uint32_t)sample->ret != 0) /* an int */
		return note_failure(step, call);
	if (!call->stored && call->entry_seen && sample->has_dump &&
	    stack_dump_read_u64(&sample->dump, call->args[call->schema->block_arg], &address) != 0)
		address = 0;
	if (address)
		return enter_block(step, call, address);
	if (!inner_is_held(step, call))
		step->sink->stats.blocks_unlocated++;
	settle_inner(step->sink, step->heap, call);
	return 0;
}

static void note_unpaired_return(struct heap_step *step)
{
	struct heap_tracker_stats *stats = &step->sink->stats;

	stats->returns_without_entry++;
	stats->returns_at_start += step->is_first;
	step->thread->unpaired_return = step->op.schema;
	step->thread->unpaired_return_address = step->sample->return_address;
	step->thread->unpaired_return_cpu = step->sample->origin.cpu;
	/* A call from before the recording has released none of the recorded blocks. */
	if (step->op.schema->effect == HEAP_REALLOC && !step->is_first) {
		stats->unpaired_reallocs++;
		stats->last_unpaired_realloc_ns = step->op.time_ns;
	}
}

/* Pops the call that this return ends. It is valid until the next call is opened. */
static struct open_call *pop_call(struct heap_step *step)
{
	struct call_stack *calls = step->thread->calls;
	int index = call_stack_match(calls, step->sample);

	if (index < 0) {
		note_unpaired_return(step);
		calls->made_up = (struct open_call){
			.schema = step->op.schema,
			.caller = step->sample->return_address,
			.inner_failure = ANOMALY_NONE,
		};
		return &calls->made_up;
	}
	/* The calls inside it have ended, too. Their blocks count as made by this call. */
	while (calls->depth - 1 > index) {
		struct open_call *inner = call_stack_top(calls);

		for (; inner->nr_inner > 0; inner->nr_inner--) {
			const struct inner_block *block = &inner->inner[inner->nr_inner - 1];

			if (!call_add_inner(&calls->calls[index], block->address, block->sequence))
				break;
		}
		/* A call that was jumped to ends at the same exit. Its own event comes second. */
		if (step->sample->event->point == PROBE_EXIT && inner->is_jumped_to) {
			settle_inner(step->sink, step->heap, inner);
			calls->depth--;
		} else {
			abandon_top(step, ENTRY_JUMPED_OVER);
		}
	}
	calls->depth--;
	return &calls->calls[index];
}

static int handle_return(struct heap_step *step)
{
	struct open_call *call = pop_call(step);

	if (step->sample->event->point == PROBE_EXIT)
		call_stack_note_exit(step->thread->calls, step->sample, call);
	step->caller = call->caller;
	if (call->inner_failure != ANOMALY_NONE)
		heap_anomalies_withdraw_chain(&step->sink->anomalies, call->inner_failure);
	if (step->op.schema->effect == HEAP_ALLOC_TO_PTR)
		return return_to_ptr(step, call);
	return step->sample->ret ? enter_block(step, call, step->sample->ret)
				 : note_failure(step, call);
}

/* True if this call's return came just before, from a CPU whose clock must be behind. */
static bool returned_before(const struct heap_step *step)
{
	const struct thread *thread = step->thread;

	return thread->unpaired_return == step->op.schema && step->caller &&
	       thread->unpaired_return_address == step->caller &&
	       thread->unpaired_return_cpu != step->sample->origin.cpu;
}

static int handle_entry(struct heap_step *step)
{
	struct call_stack *calls = step->thread->calls;
	struct open_call *call;

	if (calls->depth == CALL_MAX_DEPTH) {
		abandon(step->sink, step->heap, &calls->calls[0], ENTRY_PUSHED_OUT);
		call_stack_remove_bottom(calls);
	}
	if (returned_before(step))
		step->sink->stats.clock_steps++;
	call = call_stack_push(calls, step->sample, &step->op);
	call->caller = step->caller;
	return call->schema->effect == HEAP_REALLOC ? heap_release_old_block(step, call) : 0;
}

static int handle_store(struct heap_step *step)
{
	const struct perf_sample *sample = step->sample;
	struct call_stack *calls = step->thread->calls;

	for (int i = calls->depth - 1; i >= 0; i--) {
		struct open_call *call = &calls->calls[i];
		int memptr = call->schema->block_arg;

		if (call->schema != step->op.schema || call->args[memptr] != sample->args[memptr])
			continue;
		call->stored = true;
		call->stored_block = sample->block;
		break;
	}
	return 0;
}

/* An entry and its return in one event. */
static int handle_whole_call(struct heap_step *step)
{
	struct open_call *call;
	int err;

	if (call_stack_jumps_to(step->thread->calls, step->caller))
		step->caller = 0;
	err = handle_entry(step);
	if (err)
		return err;
	if (step->op.schema->effect == HEAP_ALLOC_TO_PTR) {
		call = call_stack_top(step->thread->calls);
		call->stored = true;
		call->stored_block = step->sample->block;
	}
	return handle_return(step);
}

/*
 * Handles an event by its point in the call. An event that is no release also ends what was noted
 * of the thread's consecutive releases.
 */
static int handle_probe_event(struct heap_step *step)
{
	bool is_release = step->op.schema->effect == HEAP_RELEASE;

	step->previous = step->thread->last_return;
	step->thread->last_return.sequence = 0;
	if (!is_release) {
		step->thread->free_run = FREE_RUN_EMPTY;
		release_chain_end(&step->thread->releases);
	}
	switch (step->sample->event->point) {
	case PROBE_ENTRY:
		return is_release ? heap_release_free(step) : handle_entry(step);
	case PROBE_RETURN:
	case PROBE_EXIT:
		return is_release ? 0 : handle_return(step);
	case PROBE_STORE:
		return step->op.schema->effect == HEAP_ALLOC_TO_PTR ? handle_store(step) : 0;
	case PROBE_CALL:
		return is_release ? heap_release_free(step) : handle_whole_call(step);
	}
	return 0;
}

int heap_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
		      const struct perf_sample *sample, uint32_t stack_id)
{
	struct heap_step step = {
		.sink = sink,
		.sample = sample,
		.thread = thread,
		.heap = heap,
		.op = heap_op_of(thread, sample, sample->event->schema, stack_id),
		.caller = call_caller_of(sample),
		.is_first = !thread->calls,
	};
	int err;

	sink->stats.events++;
	if (sample->event->point == PROBE_EXIT &&
	    (!thread->calls || !call_stack_has_exit(thread->calls, sample)))
		return 0;
	if (!thread->calls)
		thread->calls = calloc(1, sizeof(*thread->calls));
	if (!thread->calls)
		return -ENOMEM;
	err = handle_probe_event(&step);
	call_stack_note_event(thread->calls, sample);
	/* Only the thread's previous event counts. */
	if (thread->unpaired_return && sample->event->point != PROBE_RETURN)
		thread->unpaired_return = NULL;
	return err;
}
