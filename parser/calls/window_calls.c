/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/window_calls.h"

/* A window that ends so close to the recording's end, as a share of its length, ended with it. */
#define NEAR_END 64

/* What an observer is told to have ended a block. */
static const struct probe_schema window_schema = {
	.function = "window",
	.effect = HEAP_RELEASE,
	.size_arg = -1,
	.count_arg = -1,
	.block_arg = -1,
};

static struct site_block site_block_of_followed(const struct followed_block *block)
{
	return (struct site_block){block->stack_id, block->size_bytes, block->allocated_ns};
}

/*
 * Removes the block from its heap. Returns 1, 0 if it is not there any more, or a negative errno.
 */
static int remove_from_heap(struct heap_sink *sink, struct process_table *table,
			    const struct followed_block *followed, uint64_t time_ns)
{
	pid_t pid = (pid_t)followed->key.pid;
	struct process *process = process_table_find(table, pid);
	struct heap_op op = {
		.time_ns = time_ns,
		.pid = pid,
		.tid = pid,
		.stack_id = STACK_NONE,
		.schema = &window_schema,
	};
	struct heap_block block;
	struct heap *heap;
	int err;

	if (!process || !process->space)
		return 0;
	err = process_open_heap(table, process, &heap);
	if (err)
		return err;
	if (!heap_withdraw(heap, followed->key.address, followed->sequence, &block))
		return 0;
	op.sequence = block.allocated.sequence;
	heap_sink_tell(sink, false, &block, &op);
	return 1;
}

/* No look has come. What became of the block after its window is unknown. */
static int lose_sight(struct heap_sink *sink, struct process_table *table,
		      struct followed_block *followed)
{
	const struct site_block block = site_block_of_followed(followed);
	int err = followed->ended_ns ? 1
				     : remove_from_heap(sink, table, followed, followed->closed_ns);

	/* It may have ended otherwise: a resource was released, its process was thought dead. */
	if (err == 1) {
		sink->stats.unobserved_blocks++;
		err = site_stats_lose_sight(sink->sites, &block, followed->closed_ns);
	}
	followed_blocks_remove(&sink->windows.blocks, followed);
	return err;
}

static int lose_sight_before(struct heap_sink *sink, struct process_table *table,
			     uint64_t closed_ns)
{
	struct followed_block *followed;
	int err = 0;

	while (!err && (followed = followed_blocks_waiting(&sink->windows.blocks, closed_ns)))
		err = lose_sight(sink, table, followed);
	return err;
}

/* --- a window --- */

struct closing {
	struct heap_sink *sink;
	struct process_table *table;
	uint64_t close_ns, window_ns;
	int err;
};

static void follow_block(void *context, const struct heap_block *block)
{
	struct closing *closing = context;
	struct window_sink *windows = &closing->sink->windows;
	const struct followed_block followed = {
		.key = {block->address, block->allocated.pid},
		.allocated_ns = block->allocated.time_ns,
		.sequence = block->allocated.sequence,
		.size_bytes = block->size_bytes,
		.stack_id = block->allocated.stack_id,
		.opened_ns = windows->since_ns,
		.closed_ns = closing->close_ns,
		.window_ns = closing->window_ns,
		.seen_ns = closing->close_ns,
	};
	const struct site_block outliving = site_block_of_followed(&followed);
	struct followed_block *former;

	if (closing->err || block->allocated.time_ns < windows->since_ns)
		return;
	/* An earlier block, which has ended, but may yet turn out to be in the sample. */
	former = followed_blocks_find(&windows->blocks, block->allocated.pid, block->address);
	/* It is this one: the heap was compacted meanwhile, and is visited again. */
	if (former && former->sequence == followed.sequence)
		return;
	if (former)
		closing->err = lose_sight(closing->sink, closing->table, former);
	if (!closing->err)
		closing->err = followed_blocks_add(&windows->blocks, &followed);
	if (!closing->err)
		closing->err =
			site_stats_outlive(closing->sink->sites, &outliving, closing->close_ns);
}

static void forget_region(void *context, const struct region *region)
{
	struct closing *closing = context;
	const struct site_block block = {
		.stack_id = region->mapped.stack_id,
		.size_bytes = region->end - region->start,
		.time_ns = region->mapped.time_ns,
	};

	if (closing->err || region->is_own)
		return;
	closing->sink->stats.unobserved_blocks++;
	closing->err = site_stats_outlive(closing->sink->sites, &block, closing->close_ns);
	if (!closing->err)
		closing->err =
			site_stats_lose_sight(closing->sink->sites, &block, closing->close_ns);
}

/* leakrec does not look at mappings. */
static int forget_regions(struct closing *closing, struct heap_space *space)
{
	struct region_cuts cuts = {0};
	int err;

	if (!space->regions || !region_map_nr(space->regions))
		return 0;
	region_map_for_each_own(space->regions, forget_region, closing);
	region_map_set_break(space->regions, 0);
	err = region_map_remove(space->regions, 0, UINT64_MAX, &cuts);
	region_cuts_deinit(&cuts);
	return err;
}

int window_calls_open(struct heap_sink *sink, struct process_table *table, uint64_t time_ns)
{
	int err = observed_time_open(&sink->windows.time, time_ns);

	if (err || time_ns < FOLLOW_PATIENCE_NS)
		return err;
	return lose_sight_before(sink, table, time_ns - FOLLOW_PATIENCE_NS);
}

int window_calls_close(struct heap_sink *sink, struct process_table *table,
		       const struct perf_sample *sample)
{
	uint64_t time_ns = sample->origin.time_ns;
	struct window_sink *windows = &sink->windows;
	struct closing closing = {.sink = sink, .table = table, .close_ns = time_ns};
	struct heap_space *space;

	observed_time_close(&windows->time, time_ns, sample->args[WINDOW_PACE]);
	closing.window_ns = windows->time.windows[windows->time.nr - 1].observed_ns;
	while ((space = heap_spaces_take_active(&table->spaces))) {
		if (space->heap)
			heap_for_each_young(space->heap, follow_block, &closing);
		if (!closing.err)
			closing.err = forget_regions(&closing, space);
	}
	/* An event of the same time was in this window. */
	windows->since_ns = time_ns + 1;
	return closing.err;
}

/* --- looks --- */

/* The block was freed, at some time after it was last seen and before @time_ns. */
static int note_freed(struct heap_sink *sink, struct followed_block *followed, uint64_t time_ns)
{
	const struct site_block block = site_block_of_followed(followed);
	uint64_t closed_ns = followed->closed_ns;

	followed_blocks_remove(&sink->windows.blocks, followed);
	return site_stats_leave_late(sink->sites, &block, closed_ns, time_ns);
}

int window_calls_look(struct heap_sink *sink, struct process_table *table,
		      const struct perf_sample *sample)
{
	uint64_t allocated_ns = sample->args[LOOK_ALLOCATED], time_ns = sample->origin.time_ns;
	struct window_sink *windows = &sink->windows;
	struct followed_block *followed = followed_blocks_find(&windows->blocks, sample->origin.pid,
							       sample->args[LOOK_ADDRESS]);
	struct site_block block;
	int err;

	/*
	 * Two functions may have returned the block (malloc, and new around it), and only one block
	 * of a window is held at an address when it closes.
	 */
	if (!followed || allocated_ns < followed->opened_ns || allocated_ns > followed->closed_ns ||
	    sample->mark_number < LOOK_GONE || sample->mark_number > LOOK_UNTOUCHED) {
		sink->stats.unknown_looks++;
		return 0;
	}
	sink->stats.looks++;
	block = site_block_of_followed(followed);
	if (!followed->nr_looks) {
		sink->stats.followed_blocks++;
		site_stats_follow(sink->sites, &block, followed->closed_ns);
	}
	if (followed->ended_ns)
		return note_freed(sink, followed, followed->ended_ns);
	if (sample->mark_number != LOOK_GONE) {
		followed_blocks_look(&windows->blocks, followed,
				     (enum look_state)sample->mark_number, time_ns);
		return 0;
	}
	err = remove_from_heap(sink, table, followed, time_ns);
	/* It has ended otherwise: its process executed another program. */
	if (err <= 0) {
		followed_blocks_remove(&windows->blocks, followed);
		return err;
	}
	sink->stats.gone_blocks++;
	return note_freed(sink, followed, time_ns);
}

int window_calls_end(struct heap_sink *sink, const struct heap_block *block,
		     const struct heap_op *op)
{
	struct followed_block *followed =
		followed_blocks_find(&sink->windows.blocks, block->allocated.pid, block->address);

	if (!followed || followed->sequence != block->allocated.sequence)
		return 0;
	if (followed->nr_looks)
		return note_freed(sink, followed, op->time_ns);
	followed->ended_ns = op->time_ns;
	return 0;
}

/* --- ends --- */

int window_calls_end_process(struct heap_sink *sink, struct process_table *table, pid_t pid)
{
	struct followed_block *followed;
	int err = 0;

	while (!err && (followed = followed_blocks_waiting_of(&sink->windows.blocks, pid)))
		err = lose_sight(sink, table, followed);
	return err;
}

/* The blocks of a window that closed with the recording were observed until its end. */
static void keep_last(struct heap_sink *sink)
{
	struct window_sink *windows = &sink->windows;
	const struct observed_window *last = &windows->time.windows[windows->time.nr - 1];
	struct followed_block *followed, *next;
	uint64_t length_ns = last->close_ns - last->open_ns;

	if (windows->end_ns > last->close_ns &&
	    windows->end_ns - last->close_ns > length_ns / NEAR_END)
		return;
	for (followed = windows->blocks.waiting; followed; followed = next) {
		const struct site_block block = site_block_of_followed(followed);

		next = followed->next;
		if (followed->closed_ns != last->close_ns || followed->ended_ns)
			continue;
		followed_blocks_look(&windows->blocks, followed, LOOK_TOUCHED, last->close_ns);
		followed->is_certain = true;
		site_stats_follow(sink->sites, &block, followed->closed_ns);
	}
}

int window_calls_finish(struct heap_sink *sink, struct process_table *table)
{
	if (!sink->windows.time.nr)
		return 0;
	if (!sink->windows.time.is_open)
		keep_last(sink);
	return lose_sight_before(sink, table, UINT64_MAX);
}

/* True if it is known that @block was held after its window; or its window is still open. */
static bool is_shown(const struct heap_sink *sink, const struct heap_block *block)
{
	const struct followed_block *followed;

	if (!heap_sink_is_earlier(sink, block))
		return true;
	followed =
		followed_blocks_find(&sink->windows.blocks, block->allocated.pid, block->address);
	return followed && followed->sequence == block->allocated.sequence && followed->nr_looks;
}

size_t window_calls_keep_shown(const struct heap_sink *sink, struct heap_block *blocks, size_t nr)
{
	size_t nr_shown = 0;

	if (!sink->windows.since_ns)
		return nr;
	for (size_t i = 0; i < nr; i++)
		if (is_shown(sink, &blocks[i]))
			blocks[nr_shown++] = blocks[i];
	return nr_shown;
}
