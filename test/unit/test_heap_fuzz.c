/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random programs against the heap tracker. A made-up machine runs threads of several processes,
 * keeps its own plain account of what each call really did (an array for each address space), and
 * sends the events that a recording would have. The tracker, which sees the events only, must come
 * to the same account.
 */
#include "test_heap_feed.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NR_ADDRESSES	256
#define NR_PROCESSES	6
#define NR_THREADS	4 /* of each process */
#define MAX_EVENTS	8 /* of one call */
#define FIRST_PID	1000
#define NR_PIDS		400 /* so that they are used anew */
#define MANY_HELD	100
#define NO_ADDRESS	(-1)
#define BASE_ADDRESS	0x10000u
#define ADDRESS_STEP	0x40u
#define TRAMPOLINE	0x7fffffffe000u
#define PLT_STUB	0x7f0000026010u
#define UNKNOWN_ADDRESS 0x90000000u

enum state { NEVER, HELD, RELEASED };

struct block {
	enum state state;
	struct heap_block b;
	uint64_t released_by;
};

struct memory {
	int nr_users; /* processes; 0: this slot is unused */
	struct block blocks[NR_ADDRESSES];
	bool busy[NR_ADDRESSES]; /* a call is at work on it, the program does not touch it */
};

enum effect { NOTHING, RELEASES_OLD, IS_UNKNOWN, ENTERS, FAILS };

/* One event of a call, to be sent when its thread's turn comes. */
struct event {
	const char *function;
	enum probe_point point;
	uint64_t args[PROBE_MAX_ARGS];
	uint64_t caller;
	uint64_t probe_address;
	bool lost;
	enum effect effect;
};

struct call {
	struct event events[MAX_EVENTS];
	int nr, at;
	int nr_open; /* entries sent without their returns */
	uint64_t size_bytes;
	bool size_known, in_place, failed;
	int old;	/* realloc's block, or NO_ADDRESS */
	int block;	/* the result, or NO_ADDRESS as long as there is none */
	int vacates_at; /* the event from which on another thread may be handed @old */
	bool unlocated;
	uint64_t release_sequence;
	struct heap_block old_block;
};

struct task {
	pid_t tid; /* 0: this slot is unused */
	bool flushes;
	struct call call;
};

struct process {
	pid_t pid; /* 0: this slot is unused */
	struct memory *memory;
	struct task tasks[NR_THREADS]; /* [0] is the first */
};

struct machine {
	struct feed feed;
	uint64_t random;
	bool callers, lossy;
	struct process processes[NR_PROCESSES];
	struct memory memories[NR_PROCESSES];
	pid_t next_pid;
	uint64_t nr_calls, nr_unknown;
	struct heap_tracker_stats truth;
	struct heap_block *dead; /* held by processes that are no more */
	size_t nr_dead, max_dead;
	int64_t shown; /* blocks that the observer saw enter, less those that left */
};

static uint64_t draw(struct machine *m, uint64_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random % below;
}

static uint64_t address_of(int index)
{
	return BASE_ADDRESS + ADDRESS_STEP * (uint64_t)index;
}

static uint64_t unknown_address(struct machine *m)
{
	return UNKNOWN_ADDRESS + 16 * m->nr_unknown++;
}

static int pick_address(struct machine *m, const struct memory *memory, enum state state)
{
	int start = (int)draw(m, NR_ADDRESSES);

	for (int i = 0; i < NR_ADDRESSES; i++) {
		int index = (start + i) % NR_ADDRESSES;

		if (memory->blocks[index].state == state && !memory->busy[index])
			return index;
	}
	return NO_ADDRESS;
}

/* An address that malloc may hand out. */
static int pick_vacant(struct machine *m, const struct memory *memory)
{
	int index = pick_address(m, memory, draw(m, 4) ? RELEASED : NEVER);

	if (index == NO_ADDRESS)
		index = pick_address(m, memory, NEVER);
	if (index == NO_ADDRESS)
		index = pick_address(m, memory, RELEASED);
	assert_int_not_equal(index, NO_ADDRESS);
	return index;
}

static int count_held(const struct memory *memory)
{
	int nr = 0;

	for (int i = 0; i < NR_ADDRESSES; i++)
		nr += memory->blocks[i].state == HELD;
	return nr;
}

/* What calls do */

static void really_release(struct machine *m, struct memory *memory, int index)
{
	struct block *block = &memory->blocks[index];

	if (block->state != HELD) {
		m->truth.anomalies[ANOMALY_DOUBLE_FREE]++;
		return;
	}
	m->truth.frees++;
	m->truth.freed_bytes += block->b.size_bytes;
	block->state = RELEASED;
	block->released_by = m->feed.sequence;
}

static void really_enter(struct machine *m, struct process *p, struct task *t,
			 const struct event *event)
{
	struct call *call = &t->call;
	struct block *block = &p->memory->blocks[call->block];

	if (block->state == HELD) { /* the inner call's return had entered it already */
		m->truth.allocations--;
		m->truth.allocated_bytes -= block->b.size_bytes;
	}
	block->state = HELD;
	block->b = (struct heap_block){
		.address = address_of(call->block),
		.size_bytes = call->size_known ? call->size_bytes : 0,
		.size_known = call->size_known,
		.allocated =
			{
				.time_ns = m->feed.sequence * 10,
				.sequence = m->feed.sequence,
				.pid = p->pid,
				.tid = t->tid,
				.schema = probe_schema_find(event->function),
			},
	};
	m->truth.allocations++;
	m->truth.allocated_bytes += block->b.size_bytes;
}

static void really_fail(struct machine *m, struct process *p, struct call *call)
{
	struct block *block;

	if (!call->failed)
		m->truth.anomalies[ANOMALY_ALLOC_FAILED]++;
	call->failed = true;
	if (call->at < call->nr || call->old == NO_ADDRESS || !call->release_sequence)
		return;
	block = &p->memory->blocks[call->old];
	if (block->state != RELEASED || block->released_by != call->release_sequence)
		return;
	block->state = HELD;
	block->b = call->old_block;
	m->truth.frees--;
	m->truth.freed_bytes -= call->old_block.size_bytes;
}

/* Sending events */

static void end_call(struct process *p, struct call *call)
{
	if (call->old != NO_ADDRESS)
		p->memory->busy[call->old] = false;
	if (call->block != NO_ADDRESS)
		p->memory->busy[call->block] = false;
	*call = (struct call){.old = NO_ADDRESS, .block = NO_ADDRESS};
}

static void send(struct machine *m, const struct event *event, uint64_t value)
{
	struct perf_sample sample = {.ret = value};

	memcpy(sample.args, event->args, sizeof(sample.args));
	if (event->point == PROBE_ENTRY && m->callers)
		sample.caller = event->caller;
	if (event->point == PROBE_RETURN)
		sample.return_address = event->caller;
	m->feed.probe_address = event->probe_address;
	feed_send(&m->feed, event->function, event->point, &sample);
}

static uint64_t value_of(struct machine *m, struct process *p, struct call *call,
			 const struct event *event)
{
	if (event->effect != ENTERS)
		return event->point == PROBE_RETURN && event->effect == FAILS &&
				       probe_schema_find(event->function)->effect ==
					       HEAP_ALLOC_TO_PTR
			       ? 12
			       : 0;
	if (call->block == NO_ADDRESS)
		call->block = call->in_place ? call->old : pick_vacant(m, p->memory);
	p->memory->busy[call->block] = true;
	return address_of(call->block);
}

/* Sends the next event of @t's call. */
static void step_call(struct machine *m, struct process *p, struct task *t)
{
	struct call *call = &t->call;
	const struct event *event = &call->events[call->at++];
	const struct probe_schema *schema = probe_schema_find(event->function);
	bool to_ptr = schema->effect == HEAP_ALLOC_TO_PTR;
	uint64_t value = value_of(m, p, call, event);

	feed_as(&m->feed, p->pid, t->tid);
	if (event->lost) {
		m->truth.entries_without_return += event->point == PROBE_RETURN;
	} else {
		send(m, event,
		     to_ptr && event->point == PROBE_RETURN && event->effect == ENTERS ? 0 : value);
		if (event->point == PROBE_RETURN && call->nr_open-- == 0) {
			m->truth.returns_without_entry++;
			call->nr_open = 0;
		}
		if (event->point == PROBE_ENTRY && probe_schema_has_return(schema))
			call->nr_open++;
		if (event->effect == RELEASES_OLD) {
			call->old_block = p->memory->blocks[call->old].b;
			if (p->memory->blocks[call->old].state == HELD)
				call->release_sequence = m->feed.sequence;
			really_release(m, p->memory, call->old);
		} else if (event->effect == IS_UNKNOWN) {
			m->truth.anomalies[ANOMALY_REALLOC_UNKNOWN]++;
		} else if (event->effect == ENTERS && event->point == PROBE_RETURN) {
			if (call->unlocated)
				m->truth.blocks_unlocated++;
			else
				really_enter(m, p, t, event);
		} else if (event->effect == FAILS) {
			really_fail(m, p, call);
		}
	}
	if (call->old != NO_ADDRESS && call->at == call->vacates_at) {
		p->memory->busy[call->old] = false;
		call->old = NO_ADDRESS;
	}
	if (call->at == call->nr)
		end_call(p, call);
}

/* Making calls up */

static struct event *add_event(struct call *call, const char *function, enum probe_point point,
			       uint64_t caller)
{
	struct event *event = &call->events[call->nr++];

	assert_true(call->nr <= MAX_EVENTS);
	*event = (struct event){.function = function, .point = point, .caller = caller};
	return event;
}

/* Each call of the program has a return address of its own. */
static uint64_t new_caller(struct machine *m)
{
	return FEED_PROGRAM + 16 * m->nr_calls++ * 2 + 8;
}

static void set_args(struct event *event, const char *function, const struct call *call,
		     uint64_t old_address)
{
	const struct probe_schema *schema = probe_schema_find(function);

	if (schema->count_arg >= 0) {
		event->args[schema->count_arg] = 1;
		event->args[schema->size_arg] = call->size_bytes;
	} else {
		event->args[schema->size_arg] = call->size_bytes;
	}
	if (schema->effect == HEAP_REALLOC)
		event->args[schema->block_arg] = old_address;
}

/* One call, or the same call seen at its PLT stub too. */
static void plan_plain(struct machine *m, struct call *call, const char *function,
		       uint64_t old_address, enum effect at_entry, enum effect at_return)
{
	uint64_t caller = new_caller(m);
	bool twice = draw(m, 5) == 0;
	struct event *event;

	if (twice) {
		event = add_event(call, function, PROBE_ENTRY, caller);
		event->probe_address = PLT_STUB;
		event->effect = at_entry;
		set_args(event, function, call, old_address);
	}
	event = add_event(call, function, PROBE_ENTRY, twice ? TRAMPOLINE : caller);
	event->effect = twice ? NOTHING : at_entry;
	set_args(event, function, call, old_address);
	if (at_return == ENTERS && !call->in_place)
		call->vacates_at = call->nr;
	event = add_event(call, function, PROBE_RETURN, caller);
	event->effect = at_return;
	if (twice) {
		event = add_event(call, function, PROBE_RETURN, caller);
		event->effect = at_return;
		event->probe_address = PLT_STUB;
	}
	if (twice || !m->lossy || at_return != ENTERS || draw(m, 20))
		return;
	if (draw(m, 2)) {
		call->events[1].lost = true;
	} else if (at_entry == NOTHING && !call->in_place) {
		call->events[0].lost = true;
		call->size_known = false;
	}
}

static void plan_allocation(struct machine *m, struct call *call)
{
	static const char *const functions[] = {"malloc", "calloc", "memalign", "aligned_alloc",
						"valloc"};
	const char *function = functions[draw(m, 5)];

	plan_plain(m, call, function, 0, NOTHING, draw(m, 50) ? ENTERS : FAILS);
}

/* realloc(), with malloc() and free() called inside. */
static void plan_nested_realloc(struct machine *m, struct call *call, uint64_t old_address,
				enum effect at_entry)
{
	uint64_t caller = new_caller(m);
	struct event *event = add_event(call, "realloc", PROBE_ENTRY, caller);

	set_args(event, "realloc", call, old_address);
	event->effect = at_entry;
	event = add_event(call, "malloc", PROBE_ENTRY, old_address ? FEED_IN_LIBC : TRAMPOLINE);
	set_args(event, "malloc", call, 0);
	event = add_event(call, "malloc", PROBE_RETURN, old_address ? FEED_IN_LIBC : caller);
	event->effect = ENTERS;
	if (old_address) {
		event = add_event(call, "free", PROBE_ENTRY, FEED_IN_LIBC);
		event->args[0] = old_address;
	}
	event = add_event(call, "realloc", PROBE_RETURN, caller);
	event->effect = ENTERS;
}

static void plan_realloc_to_zero(struct machine *m, struct call *call, uint64_t old_address)
{
	uint64_t caller = new_caller(m);
	struct event *event = add_event(call, "realloc", PROBE_ENTRY, caller);

	call->size_bytes = 0;
	set_args(event, "realloc", call, old_address);
	event->effect = RELEASES_OLD;
	if (draw(m, 2)) {
		event = add_event(call, "free", PROBE_ENTRY, FEED_IN_LIBC);
		event->args[0] = old_address;
	}
	call->vacates_at = call->nr;
	add_event(call, "realloc", PROBE_RETURN, caller);
}

static void plan_realloc(struct machine *m, struct process *p, struct call *call)
{
	enum effect at_entry = RELEASES_OLD;
	uint64_t old_address;

	switch (draw(m, 12)) {
	case 0: /* of NULL */
		old_address = 0;
		at_entry = NOTHING;
		break;
	case 1: /* of a block that it does not know */
		old_address = unknown_address(m);
		plan_plain(m, call, "realloc", old_address, IS_UNKNOWN, ENTERS);
		return;
	default:
		call->old = pick_address(m, p->memory, draw(m, 15) ? HELD : RELEASED);
		if (call->old == NO_ADDRESS) {
			plan_allocation(m, call);
			return;
		}
		old_address = address_of(call->old);
		p->memory->busy[call->old] = true;
	}
	switch (draw(m, 6)) {
	case 0:
		plan_nested_realloc(m, call, old_address, at_entry);
		break;
	case 1:
		plan_plain(m, call, "realloc", old_address, at_entry, FAILS);
		break;
	case 2:
		if (call->old != NO_ADDRESS) {
			plan_realloc_to_zero(m, call, old_address);
			break;
		}
		/* fall through */
	case 3:
		call->in_place = call->old != NO_ADDRESS;
		/* fall through */
	default:
		plan_plain(m, call, "realloc", old_address, at_entry, ENTERS);
	}
}

static void plan_posix_memalign(struct machine *m, struct call *call)
{
	uint64_t caller = new_caller(m), memptr = 0x7ffe0000 + 8 * draw(m, 100);
	struct event *event = add_event(call, "posix_memalign", PROBE_ENTRY, caller);
	bool fails = draw(m, 10) == 0;

	set_args(event, "posix_memalign", call, 0);
	event->args[0] = memptr;
	if (!fails) {
		event = add_event(call, "posix_memalign", PROBE_STORE, caller);
		event->args[0] = memptr;
		event->effect = ENTERS;
		event->lost = call->unlocated = draw(m, 20) == 0;
	}
	event = add_event(call, "posix_memalign", PROBE_RETURN, caller);
	event->effect = fails ? FAILS : ENTERS;
}

static void do_free(struct machine *m, struct process *p, struct task *t)
{
	uint64_t kind = draw(m, 40);
	int index;

	feed_as(&m->feed, p->pid, t->tid);
	m->feed.caller = new_caller(m);
	m->feed.probe_address = 0;
	if (kind == 0) {
		feed_free(&m->feed, 0);
		m->truth.null_frees++;
	} else if (kind == 1) {
		feed_free(&m->feed, unknown_address(m));
		m->truth.anomalies[ANOMALY_FREE_UNKNOWN]++;
	} else {
		index = pick_address(m, p->memory, kind == 2 ? RELEASED : HELD);
		if (index == NO_ADDRESS)
			return;
		feed_free(&m->feed, address_of(index));
		really_release(m, p->memory, index);
	}
}

static void begin_call(struct machine *m, struct process *p, struct task *t)
{
	bool many = count_held(p->memory) > MANY_HELD;
	struct call *call = &t->call;
	uint64_t kind = draw(m, many ? 60 : 100);

	if (kind < 45) {
		do_free(m, p, t);
		return;
	}
	call->size_bytes = draw(m, 5000) + 1;
	call->size_known = true;
	if (kind < 65)
		plan_realloc(m, p, call);
	else if (kind < 70)
		plan_posix_memalign(m, call);
	else
		plan_allocation(m, call);
}

/* Threads and processes */

static void flush_cache(struct machine *m, struct process *p, struct task *t)
{
	uint64_t near = feed_function_address(probe_schema_find("free"));

	feed_as(&m->feed, p->pid, t->tid);
	m->feed.probe_address = 0;
	m->feed.caller = new_caller(m);
	feed_free(&m->feed, 0); /* so that what the program freed last is apart */
	m->truth.null_frees++;
	m->feed.caller = near + 0x162;
	for (uint64_t nr = draw(m, 4); nr > 0; nr--) {
		int index = pick_address(m, p->memory, RELEASED);

		if (index == NO_ADDRESS)
			continue;
		feed_free(&m->feed, address_of(index));
		m->truth.thread_exit_frees++;
	}
	m->feed.caller = near + 0x191;
	feed_free(&m->feed, unknown_address(m));
	m->truth.thread_exit_frees++;
}

/* Forgets a thread, without an event. */
static void end_task(struct machine *m, struct process *p, struct task *t)
{
	m->truth.entries_without_return += (uint64_t)t->call.nr_open;
	end_call(p, &t->call);
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

static struct memory *new_memory(struct machine *m)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		struct memory *memory = &m->memories[i];

		if (memory->nr_users > 0)
			continue;
		memset(memory, 0, sizeof(*memory));
		memory->nr_users = 1;
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
	t->call.old = t->call.block = NO_ADDRESS;
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
	bool shares = draw(m, 3) == 0;

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
		child->memory = new_memory(m);
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
		if (draw(m, 2) || p->tasks[i].call.at > 0) /* it is killed */
			exit_task(m, p, &p->tasks[i]);
		else
			end_task(m, p, &p->tasks[i]);
	}
	feed_comm(&m->feed, p->pid, p->pid, true, "other");
	leave_memory(m, p->memory, false);
	p->memory = new_memory(m);
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
	p->memory = new_memory(m);
	start_task(&p->tasks[0], p->pid, false);
	/* Forked by one of which nothing else is recorded. */
	feed_as(&m->feed, 1, 1);
	feed_fork(&m->feed, p->pid);
}

static struct process *pick_process(struct machine *m)
{
	int start = (int)draw(m, NR_PROCESSES);

	for (int i = 0; i < NR_PROCESSES; i++) {
		struct process *p = &m->processes[(start + i) % NR_PROCESSES];

		if (p->pid)
			return p;
	}
	start_process(m);
	return pick_process(m);
}

static void step(struct machine *m)
{
	struct process *p = pick_process(m);
	struct task *t = &p->tasks[draw(m, NR_THREADS)];
	uint64_t kind = draw(m, 2000);

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
		step_call(m, p, t);
	else
		begin_call(m, p, t);
}

/* Comparing the accounts */

static int compare_sequence(const void *a, const void *b)
{
	uint64_t x = ((const struct heap_block *)a)->allocated.sequence;
	uint64_t y = ((const struct heap_block *)b)->allocated.sequence;

	return (x > y) - (x < y);
}

static struct heap_block *list_truly_held(const struct machine *m, size_t *ret_nr)
{
	struct heap_block *list = calloc(m->nr_dead + NR_PROCESSES * NR_ADDRESSES, sizeof(*list));

	assert_non_null(list);
	*ret_nr = 0;
	for (size_t i = 0; i < m->nr_dead; i++)
		list[(*ret_nr)++] = m->dead[i];
	for (int i = 0; i < NR_PROCESSES; i++) {
		const struct memory *memory = &m->memories[i];

		for (int j = 0; memory->nr_users > 0 && j < NR_ADDRESSES; j++) {
			if (memory->blocks[j].state == HELD && !memory->blocks[j].b.inherited)
				list[(*ret_nr)++] = memory->blocks[j].b;
		}
	}
	qsort(list, *ret_nr, sizeof(*list), compare_sequence);
	return list;
}

static void compare_held(struct machine *m)
{
	const struct heap_block *held;
	size_t nr_true, nr = feed_held(&m->feed, &held);
	struct heap_block *truth = list_truly_held(m, &nr_true);

	assert_int_equal(nr, nr_true);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(held[i].address, truth[i].address);
		assert_int_equal(held[i].size_bytes, truth[i].size_bytes);
		assert_int_equal(held[i].size_known, truth[i].size_known);
		assert_int_equal(held[i].allocated.sequence, truth[i].allocated.sequence);
		assert_int_equal(held[i].allocated.time_ns, truth[i].allocated.time_ns);
		assert_int_equal(held[i].allocated.pid, truth[i].allocated.pid);
		assert_int_equal(held[i].allocated.tid, truth[i].allocated.tid);
		assert_ptr_equal(held[i].allocated.schema, truth[i].allocated.schema);
	}
	free(truth);
}

static void compare_counts(struct machine *m, bool at_end)
{
	const struct heap_tracker_stats *seen = feed_stats(&m->feed);

	assert_int_equal(seen->allocations, m->truth.allocations);
	assert_int_equal(seen->allocated_bytes, m->truth.allocated_bytes);
	assert_int_equal(seen->frees, m->truth.frees);
	assert_int_equal(seen->freed_bytes, m->truth.freed_bytes);
	assert_int_equal(seen->null_frees, m->truth.null_frees);
	assert_int_equal(seen->thread_exit_frees, m->truth.thread_exit_frees);
	assert_int_equal(seen->blocks_unlocated, m->truth.blocks_unlocated);
	assert_int_equal(seen->blocks_dropped_by_exec, m->truth.blocks_dropped_by_exec);
	if (!at_end) /* a call under way may be counted by its plan, not yet by its events */
		return;
	for (int i = 0; i < ANOMALY_NR_KINDS; i++)
		assert_int_equal(seen->anomalies[i], m->truth.anomalies[i]);
	assert_int_equal(seen->returns_without_entry, m->truth.returns_without_entry);
	assert_int_equal(seen->entries_without_return, m->truth.entries_without_return);
}

static void count_change(void *context, const struct heap_change *change)
{
	struct machine *m = context;

	if (!change->block.inherited)
		m->shown += change->enters ? 1 : -1;
}

static void run_machine(uint64_t seed, bool callers, bool lossy, int nr_steps)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct heap_observer observer = {.context = m, .on_change = count_change};

	assert_non_null(m);
	feed_init(&m->feed, &observer);
	m->random = seed;
	m->callers = m->feed.callers = callers;
	m->lossy = lossy;
	m->next_pid = FIRST_PID;
	for (int i = 1; i <= nr_steps; i++) {
		step(m);
		if (i % 5000 == 0) {
			compare_counts(m, false);
			compare_held(m);
		}
	}
	for (int i = 0; i < NR_PROCESSES; i++) {
		if (m->processes[i].pid)
			exit_process(m, &m->processes[i]);
	}
	feed_finish(&m->feed);
	compare_counts(m, true);
	compare_held(m);
	assert_int_equal(m->shown, (int64_t)(m->nr_dead + m->truth.blocks_dropped_by_exec));
	feed_deinit(&m->feed);
	free(m->dead);
	free(m);
}

#define NR_STEPS 60000

static void callers_known(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, true, false, NR_STEPS);
}

static void callers_unknown(void **state)
{
	for (uint64_t seed = 4; seed <= 6; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, false, false, NR_STEPS);
}

static void events_lost(void **state)
{
	for (uint64_t seed = 7; seed <= 9; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, true, true, NR_STEPS);
}

static void churn_does_not_grow_the_heap(void **state)
{
	struct heap *heap = heap_create();
	struct heap_op op = {0}, released;
	struct heap_block block = {0}, ret;

	assert_non_null(heap);
	for (uint64_t i = 1; i <= 300000; i++) {
		op.sequence = i;
		block.address = i * 16;
		assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
		assert_int_equal(heap_release(heap, block.address, &op, &ret, &released), HEAP_OK);
		assert_true(heap_nr_releases(heap) <= HEAP_MAX_RELEASES);
	}
	assert_int_equal(heap_nr_blocks(heap), 0);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_known),
		cmocka_unit_test(callers_unknown),
		cmocka_unit_test(events_lost),
		cmocka_unit_test(churn_does_not_grow_the_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
