/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/process_ends.h"

#include "parser/heap/resource_key.h"

#include <utlist.h>

/* The functions that an observer is told to have released the blocks. */
static const struct probe_schema exec_schema = {
	.function = "exec",
	.effect = HEAP_RELEASE,
	.size_arg = -1,
	.count_arg = -1,
	.block_arg = -1,
};
static const struct probe_schema exit_schema = {
	.function = "exit",
	.effect = HEAP_RELEASE,
	.size_arg = -1,
	.count_arg = -1,
	.block_arg = -1,
};

struct process_end {
	struct heap_sink *sink;
	struct heap_op op;
};

/* Shows that @block begins (@enters) or ceases to be held. */
static void show_block(const struct process_end *end, bool enters, const struct heap_block *block)
{
	struct heap_block shown = *block;

	shown.address = resource_handle(block->allocated.schema, block->address);
	/* The beginning of a provisional block was not shown. */
	if (!block->provisional)
		heap_sink_tell(end->sink, enters, &shown, &end->op);
}

static int drop_block(void *context, const struct heap_block *block)
{
	const struct process_end *end = context;
	const struct site_block site_block = site_block_of(block);

	end->sink->stats.blocks_dropped_by_exec +=
		!probe_schema_is_resource(block->allocated.schema);
	show_block(end, false, block);
	return site_stats_drop(end->sink->sites, &site_block, end->op.time_ns);
}

int process_ends_exec(struct heap_sink *sink, struct process_table *table, struct thread *thread,
		      const struct perf_comm_record *record)
{
	struct process *process = thread->process;
	struct process_end end = {
		.sink = sink,
		.op =
			{
				.time_ns = record->origin.time_ns,
				.sequence = record->origin.sequence,
				.pid = record->pid,
				.tid = record->tid,
				.stack_id = STACK_NONE,
				.schema = &exec_schema,
			},
	};
	size_t nr_calls = 0;
	int err = process_exec(table, process, &nr_calls, drop_block, &end);

	process->born_ns = record->origin.time_ns;
	sink->stats.entries_without_return += nr_calls;
	sink->stats.entries[ENTRY_EXECED] += nr_calls;
	return err;
}

void process_ends_note(struct process_ends *ends, struct process *process,
		       const struct perf_origin *origin)
{
	process->ended_ns = origin->time_ns;
	ends->sequence = origin->sequence;
	DL_APPEND2(ends->untold, process, prev_ended, next_ended);
}

static int end_block(void *context, const struct heap_block *block)
{
	const struct process_end *end = context;
	const struct site_block site_block = site_block_of(block);

	show_block(end, false, block);
	return site_stats_exit(end->sink->sites, &site_block, end->op.time_ns);
}

/* Tells observers and statistics that the process's blocks have ended with it. */
static int tell_of(struct heap_sink *sink, struct process *process, uint64_t sequence)
{
	struct heap_space *space = process->space;
	struct process_end end = {
		.sink = sink,
		.op =
			{
				.time_ns = process->ended_ns,
				.sequence = sequence,
				.pid = process->pid,
				.tid = process->pid,
				.stack_id = STACK_NONE,
				.schema = &exit_schema,
			},
	};
	int err;

	/* A space that others use does not end. Records without a time are perf's own. */
	if (!space || !heap_space_may_end(space) || !process->ended_ns)
		return 0;
	err = heap_space_bury(space);
	if (err)
		return err;
	if (heap_space_remove_empty(space->spaces, space)) {
		process->space = NULL;
		return 0;
	}
	space->ended_ns = process->ended_ns;
	return heap_space_for_each(space, end_block, &end);
}

int process_ends_tell(struct process_ends *ends, struct heap_sink *sink)
{
	int err = 0;

	while (ends->untold && !err) {
		struct process *process = ends->untold;

		DL_DELETE2(ends->untold, process, prev_ended, next_ended);
		err = tell_of(sink, process, ends->sequence);
	}
	return err;
}

struct process_return {
	struct heap_sink *sink;
	const struct perf_origin *origin;
	uint64_t ended_ns;
};

static int return_block(void *context, const struct heap_block *block)
{
	const struct process_return *returned = context;
	const struct site_block site_block = site_block_of(block);
	struct process_end begin = {.sink = returned->sink, .op = block->allocated};

	begin.op.time_ns = returned->origin->time_ns;
	begin.op.sequence = returned->origin->sequence;
	show_block(&begin, true, block);
	site_stats_unexit(returned->sink->sites, &site_block, returned->ended_ns);
	return 0;
}

void process_ends_undo(struct heap_sink *sink, struct process *process,
		       const struct perf_origin *origin)
{
	struct heap_space *space = process->space;
	struct process_return returned = {.sink = sink, .origin = origin};

	if (!space || !space->ended_ns)
		return;
	returned.ended_ns = space->ended_ns;
	space->ended_ns = 0;
	heap_space_for_each(space, return_block, &returned);
}

struct forgetting {
	struct heap_sink *sink;
	uint64_t ended_ns;
};

static int forget_block(void *context, const struct heap_block *block)
{
	const struct forgetting *forgetting = context;
	const struct site_block site_block = site_block_of(block);

	site_stats_unexit(forgetting->sink->sites, &site_block, forgetting->ended_ns);
	return site_stats_drop(forgetting->sink->sites, &site_block, forgetting->ended_ns);
}

int process_ends_forget(struct heap_sink *sink, struct heap_spaces *spaces)
{
	struct heap_space *space = NULL, *next;
	int err = 0;

	DL_FOREACH_SAFE(spaces->all, space, next)
	{
		struct forgetting forgetting = {.sink = sink, .ended_ns = space->ended_ns};

		if (!space->ended_ns || err)
			continue;
		space->nr_users = 1;
		err = heap_space_drop(spaces, space, forget_block, &forgetting);
	}
	return err;
}
