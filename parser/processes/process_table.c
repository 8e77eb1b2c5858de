/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/process_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void process_table_init(struct process_table *table)
{
	table->seed = hash_seed();
}

static unsigned int hash_id(const struct process_table *table, pid_t id)
{
	const uint64_t word = (uint64_t)id;

	return (unsigned int)hash_words(&word, 1, table->seed);
}

static void destroy_thread(struct process_table *table, struct thread *thread)
{
	HASH_DEL(table->threads, thread);
	free(thread->calls);
	free(thread->resources);
	mapping_call_destroy(thread->mapping_call);
	free(thread);
}

void process_table_deinit(struct process_table *table)
{
	struct process *process, *next_process;
	struct thread *thread, *next_thread;

	HASH_ITER (hh, table->threads, thread, next_thread)
		destroy_thread(table, thread);
	HASH_ITER (hh, table->processes, process, next_process) {
		HASH_DEL(table->processes, process);
		free(process);
	}
	heap_spaces_deinit(&table->spaces);
}

struct process *process_table_find(const struct process_table *table, pid_t pid)
{
	struct process *process;

	HASH_FIND_BYHASHVALUE(hh, table->processes, &pid, sizeof(pid), hash_id(table, pid),
			      process);
	return process;
}

struct thread *process_table_find_thread(const struct process_table *table, pid_t tid)
{
	struct thread *thread = table->last_thread;

	if (thread && thread->tid == tid)
		return thread;
	HASH_FIND_BYHASHVALUE(hh, table->threads, &tid, sizeof(tid), hash_id(table, tid), thread);
	return thread;
}

static struct process *get_process(struct process_table *table, pid_t pid)
{
	struct process *process = process_table_find(table, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = process->heap_pid = pid;
	process->doubtful = ANOMALY_NONE;
	HASH_ADD_BYHASHVALUE(hh, table->processes, pid, sizeof(process->pid), hash_id(table, pid),
			     process);
	if (!hash_added(process)) {
		free(process);
		return NULL;
	}
	return process;
}

static struct thread *get_thread(struct process_table *table, pid_t tid)
{
	struct thread *thread = process_table_find_thread(table, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->free_run = FREE_RUN_EMPTY;
	HASH_ADD_BYHASHVALUE(hh, table->threads, tid, sizeof(thread->tid), hash_id(table, tid),
			     thread);
	if (!hash_added(thread)) {
		free(thread);
		return NULL;
	}
	return thread;
}

/* Makes @thread a new living thread of @process. */
static void revive(struct thread *thread, struct process *process)
{
	if (thread->calls)
		thread->calls->depth = 0;
	thread->free_run = FREE_RUN_EMPTY;
	release_chain_end(&thread->releases);
	thread->last_return = (struct last_return){0};
	thread->unpaired_return = NULL;
	thread->descriptor_call = (struct descriptor_call){0};
	if (thread->process)
		DL_DELETE2(thread->process->threads, thread, prev_of_process, next_of_process);
	thread->process = process;
	DL_PREPEND2(process->threads, thread, prev_of_process, next_of_process);
	thread->alive = true;
	thread->is_new = false;
	thread->ended_ns = 0;
	thread->flushes_at_exit = thread->tid != process->pid;
	process->nr_threads++;
	process->ended_ns = 0;
}

static void list_active(struct process_table *table, struct thread *thread)
{
	if (thread->is_active)
		return;
	thread->is_active = true;
	thread->next_active = table->active;
	table->active = thread;
}

struct thread *process_table_take_active(struct process_table *table)
{
	struct thread *thread = table->active;

	if (!thread)
		return NULL;
	table->active = thread->next_active;
	thread->is_active = false;
	/* Its next event asks for it, which lists it again. */
	table->last_thread = NULL;
	return thread;
}

int process_table_thread(struct process_table *table, pid_t pid, pid_t tid, struct thread **ret)
{
	struct thread *thread = process_table_find_thread(table, tid);
	struct process *process;

	if (thread && thread->alive && thread->process->pid == pid) {
		list_active(table, thread);
		*ret = table->last_thread = thread;
		return 0;
	}
	process = get_process(table, pid);
	/* A process lives until its first thread, seen or not, has exited, too. */
	if (process && process->nr_threads == 0 && tid != pid) {
		struct thread *leader = get_thread(table, pid);

		if (!leader)
			return -ENOMEM;
		if (!leader->alive)
			revive(leader, process);
	}
	thread = get_thread(table, tid);
	if (!process || !thread)
		return -ENOMEM;
	if (thread->alive) { /* the tid was reused, and its end was lost */
		int err = process_table_exit_thread(table, thread);

		if (err)
			return err;
	}
	revive(thread, process);
	list_active(table, thread);
	*ret = thread;
	return 0;
}

void process_table_remove_thread(struct process_table *table, struct thread *thread)
{
	DL_DELETE2(thread->process->threads, thread, prev_of_process, next_of_process);
	if (table->last_thread == thread)
		table->last_thread = NULL;
	destroy_thread(table, thread);
}

int process_open_heap(struct process_table *table, struct process *process, struct heap **ret)
{
	int err;

	if (!process->space)
		process->space = heap_space_create(&table->spaces);
	if (!process->space)
		return -ENOMEM;
	err = heap_space_open(process->space, ret);
	if (!err && table->spaces.memory.bytes > table->spaces.limit_at)
		err = heap_spaces_limit(&table->spaces);
	return err;
}

/* Detaches the space of @process, with the leaks of its users. */
static int leave_space(struct process_table *table, struct process *process)
{
	struct heap_space *space = process->space;

	process->space = NULL;
	process->heap_pid = process->pid;
	return space ? heap_space_put(&table->spaces, space) : 0;
}

static bool flushes_at_exit(const struct process_table *table, pid_t tid)
{
	const struct thread *thread = process_table_find_thread(table, tid);

	return thread && thread->flushes_at_exit;
}

static void inherit_comm(const struct process_table *table, struct thread *child, pid_t ptid)
{
	const struct thread *parent = process_table_find_thread(table, ptid);

	if (parent && parent != child)
		memcpy(child->comm, parent->comm, sizeof(child->comm));
}

static size_t end_thread(struct thread *thread)
{
	size_t nr_open = thread->calls ? (size_t)thread->calls->depth : 0;
	struct process *process = thread->process;

	thread->alive = false;
	DL_DELETE2(process->threads, thread, prev_of_process, next_of_process);
	DL_APPEND2(process->threads, thread, prev_of_process, next_of_process);
	free(thread->calls);
	thread->calls = NULL;
	free(thread->resources);
	thread->resources = NULL;
	mapping_call_destroy(thread->mapping_call);
	thread->mapping_call = NULL;
	return nr_open;
}

/* Ends all threads of @process. Returns how many calls they had open. */
static size_t end_threads(struct process *process)
{
	size_t nr_open = 0;

	while (process->threads && process->threads->alive)
		nr_open += end_thread(process->threads);
	process->nr_threads = 0;
	return nr_open;
}

int process_table_fork(struct process_table *table, pid_t pid, pid_t ppid, pid_t ptid)
{
	struct process *parent = process_table_find(table, ppid);
	struct process *process = get_process(table, pid);
	struct thread *thread = get_thread(table, pid);
	int err;

	if (!process || !thread)
		return -ENOMEM;
	err = leave_space(table, process);
	if (err)
		return err;
	/* Those of a former process with this pid, whose end was lost. */
	end_threads(process);
	process->doubtful = ANOMALY_NONE;
	if (parent && parent->space) {
		process->space = heap_space_fork(&table->spaces, parent->space);
		if (!process->space)
			return -ENOMEM;
	}
	revive(thread, process);
	thread->flushes_at_exit = flushes_at_exit(table, ptid);
	inherit_comm(table, thread, ptid);
	return 0;
}

int process_table_new_thread(struct process_table *table, pid_t pid, pid_t tid, pid_t ptid)
{
	struct thread *thread;
	int err = process_table_thread(table, pid, tid, &thread);

	if (err)
		return err;
	inherit_comm(table, thread, ptid);
	return 0;
}

int process_share_space(struct process_table *table, struct process *child, struct process *parent)
{
	int err;

	if (child == parent || (child->space && child->space == parent->space))
		return 0;
	if (!parent->space)
		parent->space = heap_space_create(&table->spaces);
	if (!parent->space)
		return -ENOMEM;
	err = leave_space(table, child);
	if (err)
		return err;
	heap_space_get(parent->space);
	child->space = parent->space;
	child->heap_pid = parent->heap_pid;
	return 0;
}

int process_exec(struct process_table *table, struct process *process, size_t *ret_calls,
		 int (*visit)(void *context, const struct heap_block *block), void *context)
{
	struct heap_space *space = process->space;
	struct thread *leader = get_thread(table, process->pid);

	*ret_calls = 0;
	if (!leader)
		return -ENOMEM;
	/* Only one thread is left, with the process's id (fs/exec.c, de_thread()). */
	*ret_calls = end_threads(process);
	revive(leader, process);
	process->space = NULL;
	process->heap_pid = process->pid;
	return space ? heap_space_drop(&table->spaces, space, visit, context) : 0;
}

int process_table_exit_thread(struct process_table *table, struct thread *thread)
{
	struct process *process = thread->process;

	if (!thread->alive)
		return 0;
	end_thread(thread);
	process->nr_threads--;
	if (process->nr_threads > 0 || !process->space)
		return 0;
	if (process->space->nr_users > 1)
		return leave_space(table, process);
	process->space->nr_ends++;
	return heap_space_may_end(process->space) ? heap_space_bury(process->space) : 0;
}

int process_table_set_comm(struct process_table *table, pid_t tid, const char *comm)
{
	struct thread *thread = get_thread(table, tid);

	if (!thread)
		return -ENOMEM;
	snprintf(thread->comm, sizeof(thread->comm), "%s", comm);
	return 0;
}
