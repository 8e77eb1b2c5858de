/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine's threads and processes. */
#include "test/support/heap_machine.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PID 1000
#define NR_PIDS	  400 /* few, so that they are reused */

static void flush_cache(struct machine *m, struct process *p, struct task *t)
{
	uint64_t near = feed_function_address(probe_schema_find("free"));

	feed_as(&m->feed, p->pid, t->tid);
	m->feed.probe_address = 0;
	m->feed.caller = machine_new_caller(m);
	feed_free(&m->feed, 0); /* separates the program's last frees */
	m->truth.null_frees++;
	m->feed.caller = near + 0x162;
	for (uint64_t nr = machine_draw(m, 4); nr > 0; nr--) {
		int index = machine_pick_address(m, p->memory, RELEASED);

		/*
		 * The tracker takes such a free for part of the lost realloc() and reports nothing.
		 */
		if (index == NO_ADDRESS || t->lost_old[index])
			continue;
		feed_free(&m->feed, machine_address_of(index));
		m->truth.thread_exit_frees++;
	}
	m->feed.caller = near + 0x191;
	feed_free(&m->feed, machine_unknown_address(m));
	m->truth.thread_exit_frees++;
}

/* Removes a thread, without an event. */
static void end_task(struct machine *m, struct process *p, struct task *t)
{
	m->truth.entries_without_return += (uint64_t)t->call.nr_open;
	machine_end_call(p, &t->call);
	t->tid = 0;
}

static void exit_task(struct machine *m, struct process *p, struct task *t)
{
	pid_t tid = t->tid;

	if (t->flushes && t->call.at == 0)
		flush_cache(m, p, t);
	end_task(m, p, t);
	feed_exit(&m->feed, p->pid, tid);
}

static void leave_memory(struct machine *m, struct memory *memory, bool listed)
{
	if (--memory->nr_users > 0)
		return;
	for (int i = 0; i < NR_ADDRESSES; i++) {
		const struct block *block = &memory->blocks[i];

		if (block->state != HELD || block->b.inherited)
			continue;
		if (!listed) {
			m->truth.blocks_dropped_by_exec++;
			continue;
		}
		if (m->nr_dead == m->max_dead) {
			m->max_dead = m->max_dead ? 2 * m->max_dead : 1024;
			m->dead = reallocarray(m->dead, m->max_dead, sizeof(*m->dead));
			assert_non_null(m->dead);
		}
		m->dead[m->nr_dead++] = block->b;
	}
}

static struct memory *new_memory(struct machine *m, pid_t pid)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		struct memory *memory = &m->memories[i];

		if (memory->nr_users > 0)
			continue;
		memset(memory, 0, sizeof(*memory));
		memory->nr_users = 1;
		memory->pid = pid;
		return memory;
	}
	fail_msg("more memories than processes");
	return NULL;
}

static bool pid_is_used(const struct machine *m, pid_t pid)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		const struct process *p = &m->processes[i];

		for (int j = 0; p->pid && j < NR_THREADS; j++) {
			if (p->tasks[j].tid == pid || p->pid == pid)
				return true;
		}
	}
	return false;
}

static pid_t new_pid(struct machine *m)
{
	do {
		m->next_pid = FIRST_PID + (m->next_pid + 1 - FIRST_PID) % NR_PIDS;
	} while (pid_is_used(m, m->next_pid));
	return m->next_pid;
}

static void start_task(struct task *t, pid_t tid, bool flushes)
{
	*t = (struct task){.tid = tid, .flushes = flushes};
	t->call = NO_CALL;
}

static struct process *unused_process(struct machine *m)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		if (!m->processes[i].pid)
			return &m->processes[i];
	}
	return NULL;
}

static void copy_memory(struct memory *to, const struct memory *from)
{
	for (int i = 0; i < NR_ADDRESSES; i++) {
		to->blocks[i] = from->blocks[i];
		to->blocks[i].b.inherited = true;
	}
}

static void fork_process(struct machine *m, struct process *p, struct task *t)
{
	struct process *child = unused_process(m);
	bool shares = machine_draw(m, 3) == 0;

	if (!child || t->call.nr > 0)
		return;
	memset(child, 0, sizeof(*child));
	child->pid = new_pid(m);
	start_task(&child->tasks[0], child->pid, t->flushes);
	feed_as(&m->feed, p->pid, t->tid);
	feed_fork(&m->feed, child->pid);
	feed_newtask(&m->feed, child->pid, shares ? CLONE_VM | CLONE_VFORK : SIGCHLD);
	if (shares) {
		child->memory = p->memory;
		child->memory->nr_users++;
	} else {
		child->memory = new_memory(m, child->pid);
		copy_memory(child->memory, p->memory);
	}
}

static void create_thread(struct machine *m, struct process *p, struct task *t)
{
	for (int i = 1; i < NR_THREADS; i++) {
		if (p->tasks[i].tid)
			continue;
		start_task(&p->tasks[i], new_pid(m), true);
		feed_as(&m->feed, p->pid, t->tid);
		feed_new_thread(&m->feed, p->tasks[i].tid);
		feed_newtask(&m->feed, p->tasks[i].tid, CLONE_VM | CLONE_THREAD);
		return;
	}
}

static void exec_process(struct machine *m, struct process *p)
{
	if (p->tasks[0].call.nr > 0)
		return;
	for (int i = 1; i < NR_THREADS; i++) {
		if (!p->tasks[i].tid)
			continue;
		if (machine_draw(m, 2) || p->tasks[i].call.at > 0) /* it is killed */
			exit_task(m, p, &p->tasks[i]);
		else
			end_task(m, p, &p->tasks[i]);
	}
	feed_comm(&m->feed, p->pid, p->pid, true, "other");
	leave_memory(m, p->memory, false);
	p->memory = new_memory(m, p->pid);
	start_task(&p->tasks[0], p->pid, false);
}

static void exit_process(struct machine *m, struct process *p)
{
	for (int i = NR_THREADS - 1; i >= 0; i--) {
		if (p->tasks[i].tid)
			exit_task(m, p, &p->tasks[i]);
	}
	leave_memory(m, p->memory, true);
	p->pid = 0;
}

static void start_process(struct machine *m)
{
	struct process *p = unused_process(m);

	assert_non_null(p);
	memset(p, 0, sizeof(*p));
	p->pid = new_pid(m);
	p->memory = new_memory(m, p->pid);
	start_task(&p->tasks[0], p->pid, false);
	/* Forked by a process of which nothing else is recorded. */
	feed_as(&m->feed, 1, 1);
	feed_fork(&m->feed, p->pid);
}

static struct process *pick_process(struct machine *m)
{
	int start = (int)machine_draw(m, NR_PROCESSES);

	for (int i = 0; i < NR_PROCESSES; i++) {
		struct process *p = &m->processes[(start + i) % NR_PROCESSES];

		if (p->pid)
			return p;
	}
	start_process(m);
	return pick_process(m);
}

void machine_step(struct machine *m)
{
	struct process *p = pick_process(m);
	struct task *t = &p->tasks[machine_draw(m, NR_THREADS)];
	uint64_t kind = machine_draw(m, 2000);

	if (!t->tid)
		t = &p->tasks[0];
	if (kind == 0)
		exit_process(m, p);
	else if (kind == 1)
		exec_process(m, p);
	else if (kind < 6)
		fork_process(m, p, t);
	else if (kind < 20)
		create_thread(m, p, t);
	else if (kind < 30 && t != &p->tasks[0])
		exit_task(m, p, t);
	else if (t->call.nr > 0)
		machine_step_call(m, p, t);
	else
		machine_begin_call(m, p, t);
}

static void count_change(void *context, const struct heap_change *change)
{
	struct machine *m = context;

	m->shown += change->enters ? 1 : -1;
}

void machine_init(struct machine *m, uint64_t seed, bool callers, bool lossy)
{
	struct heap_observer observer = {.context = m, .on_change = count_change};

	memset(m, 0, sizeof(*m));
	feed_init(&m->feed, &observer);
	m->random = seed;
	m->callers = m->feed.callers = callers;
	m->whole_calls = callers;
	m->lossy = lossy;
	m->next_pid = FIRST_PID;
}

void machine_deinit(struct machine *m)
{
	feed_deinit(&m->feed);
	free(m->dead);
}

void machine_exit_all(struct machine *m)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		if (m->processes[i].pid)
			exit_process(m, &m->processes[i]);
	}
}
