/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/heap_tracker.h"

#include "parser/calls/carried_blocks.h"
#include "parser/calls/descriptor_calls.h"
#include "parser/calls/heap_calls.h"
#include "parser/calls/heap_releases.h"
#include "parser/calls/resource_calls.h"
#include "parser/calls/mapping_calls.h"
#include "parser/calls/process_ends.h"
#include "parser/calls/window_calls.h"
#include "parser/processes/ended_tasks.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

struct heap_tracker {
	struct heap_sink sink;
	struct process_table table;
	struct block_prefetch block_prefetch;
	struct process_ends ends;
	struct heap_block *held; /* the result of heap_tracker_held() */
	size_t nr_held;
	bool finished;
	bool moved; /* the heaps were emptied into @held */
};

/* Uses the last heap. If the block is another heap's, nothing is lost. */
static bool prefetch_block(const void *context, uint64_t address, bool sooner)
{
	const struct heap_tracker *tracker = context;
	const struct thread *thread = tracker->table.last_thread;

	return thread && thread->process && thread->process->space &&
	       thread->process->space->heap &&
	       heap_prefetch(thread->process->space->heap, address, sooner);
}

int heap_tracker_create(const struct heap_observer *observer, struct heap_tracker **ret)
{
	struct heap_tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return -ENOMEM;
	tracker->sink.sites = site_stats_create();
	if (!tracker->sink.sites) {
		free(tracker);
		return -ENOMEM;
	}
	if (observer)
		tracker->sink.observer = *observer;
	process_table_init(&tracker->table);
	tracker->block_prefetch = (struct block_prefetch){tracker, prefetch_block};
	heap_anomalies_init(&tracker->sink.anomalies, tracker->sink.stats.anomalies);
	*ret = tracker;
	return 0;
}

void heap_tracker_destroy(struct heap_tracker *tracker)
{
	if (!tracker)
		return;
	process_table_deinit(&tracker->table);
	heap_anomalies_deinit(&tracker->sink.anomalies);
	site_stats_destroy(tracker->sink.sites);
	ref_counts_destroy(tracker->sink.refs);
	observed_time_deinit(&tracker->sink.windows.time);
	followed_blocks_deinit(&tracker->sink.windows.blocks);
	free(tracker->held);
	free(tracker);
}

void heap_tracker_set_losses(struct heap_tracker *tracker, const struct heap_losses *losses)
{
	tracker->sink.losses = *losses;
}

void heap_tracker_limit_sizes(struct heap_tracker *tracker, const struct size_range *sizes)
{
	tracker->sink.sizes = *sizes;
	tracker->sink.has_sizes = true;
}

/* Gives up the thread's open calls, whose ends will not be seen. */
static int abandon_calls(struct heap_tracker *tracker, struct thread *thread, enum entry_end end)
{
	struct heap *heap;
	int err;

	if (!thread->calls || thread->calls->depth == 0)
		return 0;
	err = process_open_heap(&tracker->table, thread->process, &heap);
	if (!err)
		heap_calls_abandon(&tracker->sink, thread, heap, end);
	return err;
}

/* The thread or the recording has ended: decides what waited for more events of the thread. */
static int settle_thread(struct heap_tracker *tracker, struct thread *thread, bool exited)
{
	struct heap_sink *sink = &tracker->sink;
	int err =
		abandon_calls(tracker, thread, exited ? ENTRY_THREAD_ENDED : ENTRY_RECORDING_ENDED);

	if (err)
		return err;
	if (thread->flushes_at_exit)
		sink->stats.thread_exit_frees += free_run_end(&thread->free_run, &sink->anomalies,
							      exited, &thread->process->doubtful);
	thread->free_run = FREE_RUN_EMPTY;
	return 0;
}

static int retire_thread(struct heap_tracker *tracker, pid_t tid, const struct perf_origin *origin)
{
	struct thread *thread = process_table_find_thread(&tracker->table, tid);
	int err;

	if (!thread || !thread->alive)
		return 0;
	err = settle_thread(tracker, thread, true);
	if (!err)
		err = process_table_exit_thread(&tracker->table, thread);
	thread->ended_ns = origin->time_ns;
	if (!err && thread->process->nr_threads == 0)
		err = window_calls_end_process(&tracker->sink, &tracker->table,
					       thread->process->pid);
	if (err || thread->process->nr_threads > 0)
		return err;
	process_ends_note(&tracker->ends, thread->process, origin);
	tracker->table.last_thread = NULL; /* find_new_place() tells of the exit */
	return 0;
}

/* As process_table_thread(), for an event at @origin. */
static int get_thread(struct heap_tracker *tracker, pid_t pid, pid_t tid,
		      const struct perf_origin *origin, struct thread **ret)
{
	int err = process_ends_tell(&tracker->ends, &tracker->sink);

	if (!err)
		err = process_table_thread(&tracker->table, pid, tid, ret);
	if (!err)
		process_ends_undo(&tracker->sink, (*ret)->process, origin);
	return err;
}

/*
 * @process lives on, so none of the suspicious frees at a thread's exit was a double free, at which
 * glibc would have aborted it.
 */
static void settle_doubtful(struct heap_tracker *tracker, struct process *process)
{
	struct heap_sink *sink = &tracker->sink;

	sink->stats.thread_exit_frees +=
		heap_anomalies_withdraw_chain(&sink->anomalies, process->doubtful);
	process->doubtful = ANOMALY_NONE;
}

/* Common case: nothing has changed since the thread's last event. */
static bool is_same_place(const struct thread *thread, const struct perf_origin *origin)
{
	return thread && thread->tid == origin->tid && thread->alive &&
	       thread->process->pid == origin->pid && thread->process->doubtful == ANOMALY_NONE &&
	       thread->process->space && heap_space_is_open(thread->process->space);
}

/* As find_place(), for another thread than before, or after a change. */
static __attribute__((noinline)) int find_new_place(struct heap_tracker *tracker,
						    const struct perf_origin *origin,
						    struct thread **ret_thread,
						    struct heap **ret_heap)
{
	struct thread *thread = process_table_find_thread(&tracker->table, origin->tid);
	int err = 0;

	/* The tid was reused, and the end of its former thread was lost. */
	if (thread && thread->alive && thread->process->pid != origin->pid)
		err = retire_thread(tracker, origin->tid, origin);
	if (!err)
		err = get_thread(tracker, origin->pid, origin->tid, origin, ret_thread);
	if (err)
		return err;
	tracker->sink.stats.created_with_events += (*ret_thread)->is_new;
	(*ret_thread)->is_new = false;
	settle_doubtful(tracker, (*ret_thread)->process);
	return process_open_heap(&tracker->table, (*ret_thread)->process, ret_heap);
}

/* Finds the thread of a sample, and its heap. */
static inline int find_place(struct heap_tracker *tracker, const struct perf_origin *origin,
			     struct thread **ret_thread, struct heap **ret_heap)
{
	struct thread *thread = tracker->table.last_thread;

	if (!is_same_place(thread, origin))
		return find_new_place(tracker, origin, ret_thread, ret_heap);
	*ret_thread = thread;
	*ret_heap = thread->process->space->heap;
	return 0;
}

/* fork() and vfork() look the same in FORK records. The flags of clone() come right after. */
static int handle_newtask(struct heap_tracker *tracker, const struct perf_sample *sample)
{
	struct process *child = process_table_find(&tracker->table, sample->newtask_pid);
	struct thread *parent;
	int err;

	if (!(sample->newtask_clone_flags & CLONE_VM) ||
	    (sample->newtask_clone_flags & CLONE_THREAD) || !child)
		return 0;
	err = get_thread(tracker, sample->origin.pid, sample->origin.tid, &sample->origin, &parent);
	return err ? err : process_share_space(&tracker->table, child, parent->process);
}

int heap_tracker_sample(struct heap_tracker *tracker, const struct perf_sample *sample,
			uint32_t stack_id)
{
	struct thread *thread;
	struct heap *heap;
	int err;

	if (sample->event->is_newtask)
		return handle_newtask(tracker, sample);
	if (!sample->event->schema)
		return 0;
	err = find_place(tracker, &sample->origin, &thread, &heap);
	if (err)
		return err;
	return probe_schema_is_resource(sample->event->schema)
		       ? resource_calls_handle(&tracker->sink, thread, heap, sample, stack_id)
		       : heap_calls_handle(&tracker->sink, thread, heap, sample, stack_id);
}

int heap_tracker_syscall(struct heap_tracker *tracker, const struct perf_sample *sample,
			 uint32_t stack_id, enum mapping_owner owner)
{
	struct region_map *regions;
	struct thread *thread;
	struct heap *heap;
	int err = find_place(tracker, &sample->origin, &thread, &heap);

	if (!err && (sample->event->syscall->groups & SYSCALL_DESCRIPTORS))
		return descriptor_calls_handle(&tracker->sink, thread, heap, sample, stack_id);
	if (!err)
		err = heap_space_regions(thread->process->space, &regions);
	return err ? err
		   : mapping_calls_handle(&tracker->sink, thread, regions, sample, stack_id, owner);
}

const struct block_prefetch *heap_tracker_block_prefetch(const struct heap_tracker *tracker)
{
	return &tracker->block_prefetch;
}

bool heap_tracker_has_thread(const struct heap_tracker *tracker, pid_t pid, pid_t tid)
{
	const struct thread *thread = process_table_find_thread(&tracker->table, tid);

	return thread && thread->alive && thread->process->pid == pid;
}

static const struct call_stack *open_calls(const struct heap_tracker *tracker, pid_t tid)
{
	const struct thread *thread = process_table_find_thread(&tracker->table, tid);

	return thread && thread->alive && thread->calls && thread->calls->depth > 0 ? thread->calls
										    : NULL;
}

bool heap_tracker_has_open_calls(const struct heap_tracker *tracker, pid_t tid)
{
	return open_calls(tracker, tid);
}

bool heap_tracker_has_frame(const struct heap_tracker *tracker, pid_t tid, uint64_t address,
			    uint64_t caller)
{
	const struct call_stack *calls = open_calls(tracker, tid);

	return calls && call_stack_has_frame(calls, address, caller);
}

static int handle_new_thread(struct heap_tracker *tracker, const struct perf_task_record *record)
{
	struct thread *thread;
	int err = get_thread(tracker, record->pid, record->tid, &record->origin, &thread);

	return err ? err
		   : process_table_new_thread(&tracker->table, record->pid, record->tid,
					      record->ptid);
}

static int handle_fork(struct heap_tracker *tracker, const struct perf_task_record *record)
{
	int err = retire_thread(tracker, record->tid, &record->origin);
	struct process *former;

	if (err)
		return err;
	if (record->pid == record->ppid)
		return handle_new_thread(tracker, record);
	/* One with the same pid, whose end was lost. */
	former = process_table_find(&tracker->table, record->pid);
	if (former && former->nr_threads > 0)
		process_ends_note(&tracker->ends, former, &record->origin);
	err = process_ends_tell(&tracker->ends, &tracker->sink);
	if (!err)
		err = process_table_fork(&tracker->table, record->pid, record->ppid, record->ptid);
	if (err)
		return err;
	process_table_find(&tracker->table, record->pid)->born_ns = record->origin.time_ns;
	return 0;
}

int heap_tracker_fork(struct heap_tracker *tracker, const struct perf_task_record *record)
{
	int err = handle_fork(tracker, record);
	struct thread *thread = process_table_find_thread(&tracker->table, record->tid);

	/*
	 * A record without a time is of a task that existed before. One of a process that has
	 * another first thread is no kernel's.
	 */
	if (err || !record->origin.time_ns || !thread)
		return err;
	thread->is_new = true;
	tracker->table.last_thread = NULL; /* find_new_place() counts its first event */
	tracker->sink.stats.created_tasks++;
	return ended_tasks_are_due(&tracker->table)
		       ? ended_tasks_remove(&tracker->table, &tracker->sink.anomalies,
					    record->origin.time_ns)
		       : 0;
}

int heap_tracker_exit(struct heap_tracker *tracker, const struct perf_task_record *record)
{
	const struct thread *thread = process_table_find_thread(&tracker->table, record->tid);

	if (!thread || !thread->alive || thread->process->pid != record->pid)
		return 0;
	return retire_thread(tracker, record->tid, &record->origin);
}

int heap_tracker_comm(struct heap_tracker *tracker, const struct perf_comm_record *record)
{
	struct thread *thread;
	int err = process_table_set_comm(&tracker->table, record->tid, record->comm);

	if (err || !record->exec)
		return err;
	err = get_thread(tracker, record->pid, record->tid, &record->origin, &thread);
	if (!err)
		err = window_calls_end_process(&tracker->sink, &tracker->table, record->pid);
	return err ? err : process_ends_exec(&tracker->sink, &tracker->table, thread, record);
}

int heap_tracker_settle_exits(struct heap_tracker *tracker)
{
	return process_ends_tell(&tracker->ends, &tracker->sink);
}

int heap_tracker_forget_exited(struct heap_tracker *tracker)
{
	return process_ends_forget(&tracker->sink, &tracker->table.spaces);
}

void heap_tracker_time(struct heap_tracker *tracker, uint64_t time_ns)
{
	const struct heap_observer *observer = &tracker->sink.observer;

	site_stats_begin(tracker->sink.sites, time_ns);
	if (time_ns > tracker->sink.windows.end_ns)
		tracker->sink.windows.end_ns = time_ns;
	if (observer->on_time)
		observer->on_time(observer->context, time_ns);
}

int heap_tracker_finish(struct heap_tracker *tracker)
{
	struct thread *thread, *next;
	int err;

	if (tracker->finished)
		return 0;
	HASH_ITER (hh, tracker->table.threads, thread, next) {
		err = thread->alive ? settle_thread(tracker, thread, false) : 0;
		if (err)
			return err;
	}
	err = window_calls_finish(&tracker->sink, &tracker->table);
	if (err)
		return err;
	heap_anomalies_compact(&tracker->sink.anomalies);
	heap_release_doubt_all(&tracker->sink);
	heap_spaces_sum_own(&tracker->table.spaces, &tracker->sink.stats.own_mappings,
			    &tracker->sink.stats.own_mapped_bytes);
	tracker->sink.stats.forgetful_children = tracker->table.spaces.nr_forgotten;
	tracker->finished = true;
	return 0;
}

/* A window closes: nothing of the thread's last events may be paired with its next ones. */
static int cut_off(struct heap_tracker *tracker, struct thread *thread)
{
	int err = abandon_calls(tracker, thread, ENTRY_WINDOW_CLOSED);

	if (err)
		return err;
	/* Its next event is like a first one: a return may lack its entry. */
	free(thread->calls);
	thread->calls = NULL;
	thread->free_run = FREE_RUN_EMPTY;
	release_chain_end(&thread->releases);
	thread->last_return.sequence = 0;
	thread->last_allocation = 0;
	thread->unpaired_return = NULL;
	return 0;
}

int heap_tracker_window(struct heap_tracker *tracker, const struct perf_sample *sample)
{
	uint64_t time_ns = sample->origin.time_ns;
	struct thread *thread;

	if (sample->mark_number)
		return window_calls_open(&tracker->sink, &tracker->table, time_ns);
	if (!tracker->sink.windows.time.is_open)
		return observed_time_begin_shut(&tracker->sink.windows.time, time_ns);
	while ((thread = process_table_take_active(&tracker->table))) {
		int err = thread->alive ? cut_off(tracker, thread) : 0;

		if (err)
			return err;
	}
	return window_calls_close(&tracker->sink, &tracker->table, sample);
}

int heap_tracker_carry(struct heap_tracker *tracker, const struct perf_sample *sample,
		       uint32_t stack_id)
{
	struct process *process = process_table_find(&tracker->table, sample->origin.pid);
	struct thread *thread;
	struct heap *heap;
	int err = process ? 0
			  : get_thread(tracker, sample->origin.pid, sample->origin.pid,
				       &sample->origin, &thread);

	if (!process && !err)
		process = thread->process;
	if (!err)
		err = process_open_heap(&tracker->table, process, &heap);
	return err ? err : carried_blocks_add(&tracker->sink, process, heap, sample, stack_id);
}

int heap_tracker_look(struct heap_tracker *tracker, const struct perf_sample *sample)
{
	return window_calls_look(&tracker->sink, &tracker->table, sample);
}

const struct observed_time *heap_tracker_observed(const struct heap_tracker *tracker)
{
	return &tracker->sink.windows.time;
}

const struct followed_block *heap_tracker_followed(const struct heap_tracker *tracker,
						   const struct heap_block *block)
{
	const struct followed_block *followed = followed_blocks_find(
		&tracker->sink.windows.blocks, block->allocated.pid, block->address);

	return followed && followed->sequence == block->allocated.sequence ? followed : NULL;
}

const struct heap_tracker_stats *heap_tracker_stats(const struct heap_tracker *tracker)
{
	return &tracker->sink.stats;
}

const struct resource_counts *heap_tracker_resources(const struct heap_tracker *tracker)
{
	return tracker->sink.resources;
}

const struct ref_object *heap_tracker_refs(const struct heap_tracker *tracker,
					   const struct heap_block *block)
{
	const struct resource_call *call = resource_call_of(block->allocated.schema);

	if (!call || !tracker->sink.refs)
		return NULL;
	return ref_counts_find(tracker->sink.refs, block->allocated.pid,
			       resource_key(call->kind, block->address));
}

const struct site_stats *heap_tracker_sites(const struct heap_tracker *tracker)
{
	return tracker->sink.sites;
}

const struct heap_anomaly *heap_tracker_anomalies(const struct heap_tracker *tracker,
						  size_t *ret_nr)
{
	*ret_nr = tracker->sink.anomalies.nr;
	return tracker->sink.anomalies.list;
}

const uint64_t *heap_tracker_unlisted(const struct heap_tracker *tracker)
{
	return tracker->sink.anomalies.unlisted;
}

struct process_life heap_tracker_life(const struct heap_tracker *tracker, pid_t pid,
				      uint64_t time_ns)
{
	const struct process *process = process_table_find(&tracker->table, pid);

	if (!process)
		return (struct process_life){0};
	/* A former process with this pid, whose end may have been missed. */
	if (process->born_ns > time_ns)
		return (struct process_life){.end_ns = process->born_ns, .is_told = true};
	return (struct process_life){process->born_ns, process->ended_ns,
				     process->space && process->space->ended_ns};
}

struct held_memory heap_tracker_held_memory(const struct heap_tracker *tracker, pid_t pid)
{
	const struct process *process = process_table_find(&tracker->table, pid);

	return process && process->space ? heap_space_held_memory(process->space)
					 : (struct held_memory){0};
}

const char *heap_tracker_comm_of(const struct heap_tracker *tracker, pid_t tid)
{
	const struct thread *thread = process_table_find_thread(&tracker->table, tid);

	return thread ? thread->comm : "";
}

const char *heap_tracker_process_name(const struct heap_tracker *tracker, pid_t pid, pid_t tid)
{
	const char *name = heap_tracker_comm_of(tracker, pid);
	const struct process *process = process_table_find(&tracker->table, pid);
	const struct thread *thread = process ? process->threads : NULL, *first = NULL;

	if (*name)
		return name;
	for (; thread; thread = thread->next_of_process)
		if (*thread->comm && (!first || thread->tid < first->tid))
			first = thread;
	return first ? first->comm : heap_tracker_comm_of(tracker, tid);
}

int heap_tracker_held(struct heap_tracker *tracker, const struct heap_block **ret, size_t *ret_nr)
{
	struct heap_spaces *spaces = &tracker->table.spaces;
	struct heap_block *blocks = NULL;
	size_t nr;
	int err;

	if (!tracker->finished || !tracker->moved) {
		err = tracker->finished ? heap_spaces_move_held(spaces, &blocks, &nr)
					: heap_spaces_list_held(spaces, &blocks, &nr);
		if (err)
			return err;
		nr = window_calls_keep_shown(&tracker->sink, blocks, nr);
		for (size_t i = 0; i < nr; i++)
			blocks[i].address =
				resource_handle(blocks[i].allocated.schema, blocks[i].address);
		free(tracker->held);
		tracker->held = blocks;
		tracker->nr_held = nr;
		tracker->moved = tracker->finished;
	}
	*ret = tracker->held;
	*ret_nr = tracker->nr_held;
	return 0;
}
