/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/heap_releases.h"

#include "parser/calls/window_calls.h"

int heap_release_undo(struct heap_step *step, const struct open_call *call)
{
	struct heap_tracker_stats *stats = &step->sink->stats;
	struct heap_block block = call->old_block;
	int result;

	/* What has left the followed blocks does not come back. */
	if (!call->released || heap_sink_is_earlier(step->sink, &call->old_block))
		return 0;
	block.provisional = false; /* its release has shown that it is the program's own */
	result = heap_unrelease(step->heap, &block, call->op.sequence);
	if (result <= 0)
		return result;
	stats->frees--;
	stats->freed_bytes -= block.size_bytes;
	if (!block.inherited) {
		const struct site_block site_block = site_block_of(&block);

		site_stats_unleave(step->sink->sites, &site_block, call->op.time_ns);
	}
	heap_sink_tell_release(step->sink, true, &block, &step->op, &call->op);
	return 0;
}

/*
 * True if an open realloc() has already released the block at @address, and this event is the
 * free() that realloc() calls for it.
 */
static bool is_covered(const struct heap_step *step, uint64_t address, int nr_outer)
{
	const struct heap_op *release;

	if (nr_outer == 0 ||
	    heap_find(step->heap, address)) /* the block was allocated again meanwhile */
		return false;
	release = heap_find_release(step->heap, address);
	for (int i = nr_outer - 1; i >= 0; i--) {
		const struct open_call *outer = &step->thread->calls->calls[i];

		if (outer->schema->effect != HEAP_REALLOC ||
		    outer->args[outer->schema->block_arg] != address)
			continue;
		if (release && release->sequence > outer->op.sequence)
			continue;
		if (call_is_inside(outer, step->caller))
			return true;
	}
	return false;
}

/* Detects new[] with delete, malloc with delete, and so on. Both stacks are of interest. */
static int check_families(struct heap_step *step, const struct heap_block *block)
{
	enum heap_family made_by = block->allocated.schema->family;
	enum heap_family released_by = step->op.schema->family;
	struct heap_anomaly anomaly;

	if (made_by == released_by || made_by == FAMILY_ANY || released_by == FAMILY_ANY)
		return 0;
	anomaly = (struct heap_anomaly){
		.kind = ANOMALY_MISMATCH,
		.address = block->address,
		.op = step->op,
		.block = *block,
	};
	return heap_anomalies_add_final(&step->sink->anomalies, &anomaly);
}

/*
 * Releases a block and stores it in @ret_anomaly. Unless the result is HEAP_OK, also fills the rest
 * of @ret_anomaly, except for its kind.
 */
static int release_block(struct heap_step *step, uint64_t address, struct heap_anomaly *ret_anomaly)
{
	struct heap_tracker_stats *stats = &step->sink->stats;
	const struct heap_block *block = &ret_anomaly->block;
	int result, err = 0;

	result = heap_release(step->heap, address, &step->op, &ret_anomaly->block,
			      &ret_anomaly->released);
	/* Its allocation in between may be among the lost events. */
	if (result == HEAP_DOUBLE_FREE &&
	    heap_sink_may_miss(step->sink, ret_anomaly->released.time_ns, step->op.time_ns))
		result = HEAP_UNKNOWN;
	if (result != HEAP_OK) {
		ret_anomaly->address = address;
		ret_anomaly->op = step->op;
		if (result != HEAP_DOUBLE_FREE) {
			ret_anomaly->block = (struct heap_block){0};
			ret_anomaly->released = (struct heap_op){0};
		}
	} else {
		const struct site_block site_block = site_block_of(block);

		stats->frees++;
		stats->freed_bytes += block->size_bytes;
		heap_step_tell_leave(step->sink, block, &step->op, true);
		/* An inherited block is the parent's, which may still hold it. */
		if (!block->inherited)
			err = heap_sink_is_earlier(step->sink, block)
				      ? window_calls_end(step->sink, block, &step->op)
				      : site_stats_leave(step->sink->sites, &site_block,
							 step->op.time_ns);
		if (!err)
			err = check_families(step, block);
	}
	return err ? err : result;
}

/* A block that is not known may have been allocated between two windows. */
static bool is_in_windows(const struct heap_step *step)
{
	return step->sink->windows.time.nr > 0;
}

int heap_release_old_block(struct heap_step *step, struct open_call *call)
{
	uint64_t old = call->args[call->schema->block_arg];
	struct heap_anomaly anomaly;
	int result;

	if (!old || is_covered(step, old, step->thread->calls->depth - 1))
		return 0;
	result = release_block(step, old, &anomaly);
	if (result < 0)
		return result;
	if (result == HEAP_OK) {
		call->released = true;
		call->old_block = anomaly.block;
		return 0;
	}
	if (result == HEAP_UNKNOWN && is_in_windows(step)) {
		step->sink->stats.unobserved_frees++;
		return 0;
	}
	anomaly.kind = result == HEAP_UNKNOWN ? ANOMALY_REALLOC_UNKNOWN : ANOMALY_DOUBLE_FREE;
	return heap_anomalies_add_final(&step->sink->anomalies, &anomaly);
}

static enum free_origin origin_of_free(const struct heap_step *step)
{
	if (!step->caller || !step->sample->probe_address)
		return FREE_ORIGIN_UNKNOWN;
	return call_is_near(step->caller, step->sample->probe_address) ? FREE_BY_ALLOCATOR
								       : FREE_BY_PROGRAM;
}

static int note_suspicious_free(struct heap_step *step, struct heap_anomaly *anomaly, int result)
{
	enum free_origin origin = origin_of_free(step);
	struct free_run *run = &step->thread->free_run;
	size_t index;
	int err;

	anomaly->kind = result == HEAP_UNKNOWN ? ANOMALY_FREE_UNKNOWN : ANOMALY_DOUBLE_FREE;
	if (origin == FREE_BY_PROGRAM) {
		free_run_other_free(run, origin);
		return heap_anomalies_add_final(&step->sink->anomalies, anomaly);
	}
	err = heap_step_note_anomaly(step, anomaly, free_run_previous(run, origin), &index);
	if (!err)
		free_run_add(run, origin, index);
	return err;
}

int heap_release_free(struct heap_step *step)
{
	uint64_t mem = step->sample->args[step->op.schema->block_arg];
	struct release_chain *chain = &step->thread->releases;
	struct heap_anomaly anomaly;
	enum release_place place;
	int result;

	place = release_chain_add(chain, mem, step->sample->probe_address, step->caller);
	if (place == RELEASE_AGAIN)
		return 0;
	if (!mem) {
		step->sink->stats.null_frees++;
		free_run_other_free(&step->thread->free_run, origin_of_free(step));
		return 0;
	}
	if (is_covered(step, mem, step->thread->calls->depth))
		return 0;
	/* The pointer given to operator delete may lie inside a block of malloc's. */
	if (place == RELEASE_WITHIN && !heap_find(step->heap, mem))
		return 0;
	result = release_block(step, mem, &anomaly);
	if (result == HEAP_OK && anomaly.block.allocated.sequence == step->thread->last_allocation)
		site_stats_note_temporary(step->sink->sites, anomaly.block.allocated.stack_id);
	if (result < 0)
		return result;
	if (result == HEAP_UNKNOWN && is_in_windows(step)) {
		step->sink->stats.unobserved_frees++;
		return 0;
	}
	if (result != HEAP_OK)
		return note_suspicious_free(step, &anomaly, result);
	free_run_other_free(&step->thread->free_run, origin_of_free(step));
	return 0;
}

static void doubt(struct heap_sink *sink, struct heap_anomaly *anomaly)
{
	sink->stats.anomalies[anomaly->kind]--;
	anomaly->kind = anomaly->op.schema->effect == HEAP_REALLOC ? ANOMALY_REALLOC_UNKNOWN
								   : ANOMALY_FREE_UNKNOWN;
	anomaly->block = (struct heap_block){0};
	anomaly->released = (struct heap_op){0};
	sink->stats.anomalies[anomaly->kind]++;
}

void heap_release_doubt_all(struct heap_sink *sink)
{
	struct heap_anomalies *anomalies = &sink->anomalies;
	uint64_t *unlisted = anomalies->unlisted, nr = unlisted[ANOMALY_DOUBLE_FREE];

	for (size_t i = 0; i < anomalies->nr; i++) {
		struct heap_anomaly *anomaly = &anomalies->list[i];

		if (anomaly->kind == ANOMALY_DOUBLE_FREE &&
		    heap_sink_may_miss(sink, anomaly->released.time_ns, anomaly->op.time_ns))
			doubt(sink, anomaly);
	}
	/* The times of those that are not listed are not known. */
	if (!heap_sink_may_miss(sink, 0, UINT64_MAX))
		return;
	sink->stats.anomalies[ANOMALY_DOUBLE_FREE] -= nr;
	sink->stats.anomalies[ANOMALY_FREE_UNKNOWN] += nr;
	unlisted[ANOMALY_DOUBLE_FREE] = 0;
	unlisted[ANOMALY_FREE_UNKNOWN] += nr;
}
