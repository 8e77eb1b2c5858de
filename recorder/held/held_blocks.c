/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_blocks.h"

#include "common/hash.h"
#include "recorder/held/held_events.h"
#include "recorder/held/held_counts.h"
#include "recorder/held/held_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH   8 /* of open calls in a thread; no allocator nests deeper */
#define MAX_WAITING ((size_t)1 << 20)
#define MIN_SWEEP   (HELD_STACKS_MAX_WORDS / 8)
#define MAX_SHIFT   32

/* A call that has begun. */
struct held_call {
	const struct probe_schema *schema;
	uint64_t size_bytes, block; /* as in struct held_event */
	uint64_t return_address, probe;
	uint64_t stored;       /* HEAP_ALLOC_TO_PTR: the new block; 0: not seen */
	struct held_block old; /* HEAP_REALLOC: what it has released; no address: nothing */
};

struct held_thread {
	pid_t tid;
	unsigned int depth;
	struct held_call calls[MAX_DEPTH]; /* outermost first */
	uint64_t last_result;		   /* the block that the thread's last call has returned */
	UT_hash_handle hh;
};

struct held_process {
	pid_t pid;
	struct held_table blocks;
	struct held_thread *threads; /* by tid */
	UT_hash_handle hh;
};

struct held_blocks {
	struct held_event_types types;
	struct held_process *processes; /* by pid */
	struct held_event *waiting;
	size_t nr_waiting, capacity;
	size_t nr, limit; /* blocks of all processes */
	uint64_t nr_events, nr_left_out, nr_without_stack, nr_out_of_order, applied_ns;
	struct held_stacks *stacks; /* NULL: a block's site is a hash */
	size_t sweep_words;	    /* unused stacks are dropped when there are so many words */
	unsigned int shift;	    /* with @stacks: one block in 2^shift is kept */
	uint64_t seed;		    /* of the hash that chooses these */
	struct held_counts counts;
};

int held_blocks_create(size_t limit, struct held_blocks **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->limit = limit;
	return 0;
}

int held_blocks_keep_stacks(struct held_blocks *held)
{
	held->stacks = calloc(1, sizeof(*held->stacks));
	held->sweep_words = MIN_SWEEP;
	held->seed = hash_seed();
	return held->stacks ? 0 : -ENOMEM;
}

struct held_counts *held_blocks_counts(struct held_blocks *held)
{
	return &held->counts;
}

const struct held_stacks *held_blocks_stacks(const struct held_blocks *held)
{
	return held->stacks;
}

uint64_t held_blocks_one_of(const struct held_blocks *held)
{
	return UINT64_C(1) << held->shift;
}

/* --- processes and threads --- */

static struct held_process *find_process(const struct held_blocks *held, pid_t pid)
{
	struct held_process *process;

	HASH_FIND(hh, held->processes, &pid, sizeof(pid), process);
	return process;
}

static void drop_thread(struct held_process *process, struct held_thread *thread)
{
	HASH_DELETE(hh, process->threads, thread);
	free(thread);
}

static void drop_process(struct held_blocks *held, struct held_process *process)
{
	struct held_thread *thread, *next;

	HASH_ITER (hh, process->threads, thread, next)
		drop_thread(process, thread);
	HASH_DELETE(hh, held->processes, process);
	held->nr -= process->blocks.nr;
	held_table_deinit(&process->blocks);
	free(process);
}

void held_blocks_forget(struct held_blocks *held)
{
	struct held_process *process, *next;

	HASH_ITER (hh, held->processes, process, next)
		drop_process(held, process);
	held->shift = 0;
}

void held_blocks_destroy(struct held_blocks *held)
{
	if (!held)
		return;
	held_blocks_forget(held);
	held_event_types_deinit(&held->types);
	if (held->stacks)
		held_stacks_deinit(held->stacks);
	free(held->stacks);
	free(held->waiting);
	free(held);
}

/* NULL: out of memory. */
static struct held_process *get_process(struct held_blocks *held, pid_t pid)
{
	struct held_process *process = find_process(held, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	HASH_ADD(hh, held->processes, pid, sizeof(process->pid), process);
	if (hash_added(process))
		return process;
	free(process);
	return NULL;
}

static struct held_thread *get_thread(struct held_process *process, pid_t tid)
{
	struct held_thread *thread;

	HASH_FIND(hh, process->threads, &tid, sizeof(tid), thread);
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	HASH_ADD(hh, process->threads, tid, sizeof(thread->tid), thread);
	if (hash_added(thread))
		return thread;
	free(thread);
	return NULL;
}

/* --- calls --- */

static bool take(struct held_blocks *held, struct held_process *process, uint64_t address,
		 struct held_block *ret)
{
	if (!address || !held_table_take(&process->blocks, address, ret))
		return false;
	held->nr--;
	return true;
}

/* True if a block at @address is one of those that are kept. It stays so, or becomes false. */
static bool is_chosen(const struct held_blocks *held, uint64_t address)
{
	uint64_t hash = hash_mix(address ^ held->seed, 0xd6e8feb86659fd93);

	return !held->shift || !(hash >> (64 - held->shift));
}

/* Drops half of all blocks. */
static void thin_out(struct held_blocks *held)
{
	struct held_process *process, *next;
	struct held_block dropped;

	held->shift++;
	HASH_ITER (hh, held->processes, process, next) {
		struct held_table *table = &process->blocks;

		/* In place of one that is taken, another one may come, which was not seen yet. */
		for (size_t i = 0; i < table->nr_entries;) {
			uint64_t address = table->entries[i].address;

			if (!address || is_chosen(held, address))
				i++;
			else
				take(held, process, address, &dropped);
		}
	}
}

static void put(struct held_blocks *held, struct held_process *process,
		const struct held_block *block)
{
	bool is_new = !held_table_find(&process->blocks, block->address);

	while (held->stacks && is_new && held->nr >= held->limit && held->shift < MAX_SHIFT)
		thin_out(held);
	if (!is_chosen(held, block->address))
		return;
	if ((is_new && held->nr >= held->limit) || !held_table_put(&process->blocks, block)) {
		held->nr_left_out++;
		return;
	}
	held->nr += is_new;
	held->nr_without_stack += held->stacks && !block->site;
}

/*
 * Blocks do not overlap. So if the block that the thread's last call has returned has @address
 * inside of it, that was a call inside of this one, as in musl's aligned_alloc().
 */
static void withdraw_inner(struct held_blocks *held, struct held_process *process,
			   const struct held_thread *thread, uint64_t address)
{
	const struct held_block *inner =
		thread->last_result ? held_table_find(&process->blocks, thread->last_result) : NULL;
	struct held_block block;

	if (inner && inner->address < address && address - inner->address < inner->size_bytes)
		take(held, process, inner->address, &block);
}

/* An outer call that returns the block of an inner one counts no second time. */
static void count_stack(struct held_blocks *held, const struct held_process *process,
			const struct held_block *block)
{
	struct held_stack stack;

	if (!held->stacks || !block->site || !held->counts.nr ||
	    held_table_find(&process->blocks, block->address))
		return;
	stack = held_stacks_get(held->stacks, (uint32_t)block->site);
	held_counts_add(&held->counts, process->pid, &stack);
}

/* @call has ended with @event. */
static void end_call(struct held_blocks *held, struct held_process *process,
		     struct held_thread *thread, const struct held_call *call,
		     const struct held_event *event)
{
	bool stores = call->schema->effect == HEAP_ALLOC_TO_PTR;
	struct held_block block = {
		.address = stores ? call->stored : event->result,
		.size_bytes = call->size_bytes,
		.time_ns = event->time_ns,
		.site = event->site,
	};

	if (stores && event->result)
		block.address = 0;
	if (block.address) {
		withdraw_inner(held, process, thread, block.address);
		count_stack(held, process, &block);
		put(held, process, &block);
	} else if (call->old.address && call->size_bytes &&
		   !held_table_find(&process->blocks, call->old.address)) {
		/* realloc(p, 0) releases and returns NULL; with another size it has failed. */
		put(held, process, &call->old);
	}
	thread->last_result = block.address;
}

/* The number of the open call that @event ends, or -1. */
static int find_call(const struct held_thread *thread, const struct held_event *event)
{
	bool is_exit = event->type->point == PROBE_EXIT;

	for (unsigned int i = thread->depth; i-- > 0;) {
		const struct held_call *call = &thread->calls[i];
		bool is_known = call->return_address && event->return_address;

		if (call->schema != event->type->schema || (is_exit && call->probe != event->probe))
			continue;
		if (is_known ? call->return_address == event->return_address
			     : !is_exit || i == thread->depth - 1)
			return (int)i;
	}
	return -1;
}

static void apply_return(struct held_blocks *held, struct held_process *process,
			 struct held_thread *thread, const struct held_event *event)
{
	int nr = find_call(thread, event);
	struct held_block stale;

	if (nr >= 0) {
		/* Calls inside of it that have not returned were left by longjmp(). */
		thread->depth = (unsigned int)nr;
		end_call(held, process, thread, &thread->calls[nr], event);
		return;
	}
	/* Another function shares the `ret`. */
	if (event->type->point == PROBE_EXIT || event->type->schema->effect == HEAP_ALLOC_TO_PTR ||
	    !event->result)
		return;
	/* Its size is not known. */
	take(held, process, event->result, &stale);
	held->nr_left_out++;
}

static struct held_call call_of(const struct held_event *event)
{
	return (struct held_call){
		.schema = event->type->schema,
		.size_bytes = event->size_bytes,
		.block = event->block,
		.return_address = event->return_address,
		.probe = event->probe,
		.stored = event->stored,
	};
}

static void apply_entry(struct held_blocks *held, struct held_process *process,
			struct held_thread *thread, const struct held_event *event)
{
	struct held_call call = call_of(event);

	if (call.schema->effect == HEAP_REALLOC)
		take(held, process, call.block, &call.old);
	/* The outermost one has lost its return. */
	if (thread->depth == MAX_DEPTH)
		memmove(&thread->calls[0], &thread->calls[1],
			--thread->depth * sizeof(thread->calls[0]));
	thread->calls[thread->depth++] = call;
}

/* A store may be of another pointer: of the open calls, one must have asked for it. */
static void apply_store(struct held_thread *thread, const struct held_event *event)
{
	for (unsigned int i = thread->depth; i-- > 0;) {
		struct held_call *call = &thread->calls[i];

		if (call->schema != event->type->schema || call->block != event->block)
			continue;
		call->stored = event->stored;
		return;
	}
}

static void apply_call(struct held_blocks *held, const struct held_event *event)
{
	struct held_process *process = get_process(held, event->pid);
	struct held_thread *thread = process ? get_thread(process, event->tid) : NULL;
	struct held_block released;
	struct held_call call;

	if (!thread) {
		held->nr_left_out++;
		return;
	}
	if (event->type->schema->effect == HEAP_RELEASE) {
		if (event->type->point == PROBE_ENTRY || event->type->point == PROBE_CALL)
			take(held, process, event->block, &released);
		return;
	}
	switch (event->type->point) {
	case PROBE_ENTRY:
		apply_entry(held, process, thread, event);
		break;
	case PROBE_STORE:
		apply_store(thread, event);
		break;
	case PROBE_CALL:
		call = call_of(event);
		end_call(held, process, thread, &call, event);
		break;
	case PROBE_RETURN:
	case PROBE_EXIT:
		apply_return(held, process, thread, event);
		break;
	}
}

static void end_thread(struct held_blocks *held, const struct held_event *event)
{
	struct held_process *process = find_process(held, event->pid);
	struct held_thread *thread;

	if (!process)
		return;
	HASH_FIND(hh, process->threads, &event->tid, sizeof(event->tid), thread);
	if (thread)
		drop_thread(process, thread);
	if (event->pid == event->tid)
		drop_process(held, process);
}

static void apply(struct held_blocks *held, const struct held_event *event)
{
	struct held_process *process;

	switch (event->kind) {
	case HELD_CALL:
		apply_call(held, event);
		break;
	case HELD_FORK:
	case HELD_EXEC:
		process = find_process(held, event->pid);
		if (process)
			drop_process(held, process);
		break;
	case HELD_THREAD_END:
		end_thread(held, event);
		break;
	}
}

/* --- the order --- */

static int compare_events(const void *a, const void *b)
{
	const struct held_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

static void apply_until(struct held_blocks *held, uint64_t until_ns)
{
	size_t nr = 0;

	qsort(held->waiting, held->nr_waiting, sizeof(*held->waiting), compare_events);
	while (nr < held->nr_waiting && held->waiting[nr].time_ns <= until_ns)
		apply(held, &held->waiting[nr++]);
	held->nr_waiting -= nr;
	if (held->nr_waiting)
		memmove(held->waiting, held->waiting + nr,
			held->nr_waiting * sizeof(*held->waiting));
}

/* The number that the stack of number @site gets in @to. */
static void move_stack(const struct held_blocks *held, struct held_stacks *to, uint64_t *site)
{
	struct held_stack stack;

	if (!*site)
		return;
	stack = held_stacks_get(held->stacks, (uint32_t)*site);
	*site = held_stacks_add(to, &stack);
}

/* Drops the stacks of which no block is left. */
static void sweep_stacks(struct held_blocks *held)
{
	struct held_stacks kept = {0};
	struct held_process *process, *next;
	struct held_thread *thread, *next_thread;

	HASH_ITER (hh, held->processes, process, next) {
		for (size_t i = 0; i < process->blocks.nr_entries; i++)
			if (process->blocks.entries[i].address)
				move_stack(held, &kept, &process->blocks.entries[i].site);
		HASH_ITER (hh, process->threads, thread, next_thread)
			for (unsigned int i = 0; i < thread->depth; i++)
				if (thread->calls[i].old.address)
					move_stack(held, &kept, &thread->calls[i].old.site);
	}
	for (size_t i = 0; i < held->nr_waiting; i++)
		move_stack(held, &kept, &held->waiting[i].site);
	held_stacks_deinit(held->stacks);
	*held->stacks = kept;
	held->sweep_words = 2 * kept.nr_words > MIN_SWEEP ? 2 * kept.nr_words : MIN_SWEEP;
}

void held_blocks_apply(struct held_blocks *held, uint64_t until_ns)
{
	apply_until(held, until_ns);
	if (held->stacks && held->stacks->nr_words > held->sweep_words)
		sweep_stacks(held);
	if (until_ns > held->applied_ns)
		held->applied_ns = until_ns;
}

static void feed(struct held_blocks *held, struct held_event *event)
{
	if (held->nr_waiting == MAX_WAITING) {
		held->nr_out_of_order += MAX_WAITING;
		apply_until(held, UINT64_MAX);
	}
	if (held->nr_waiting == held->capacity) {
		size_t capacity = 2 * held->capacity + 1024;
		struct held_event *grown =
			reallocarray(held->waiting, capacity, sizeof(*held->waiting));

		if (!grown) {
			held->nr_left_out++;
			return;
		}
		held->waiting = grown;
		held->capacity = capacity;
	}
	event->nr = held->nr_events++;
	held->waiting[held->nr_waiting++] = *event;
}

int held_blocks_add_event(struct held_blocks *held, uint16_t type, const char *name,
			  const char *format)
{
	return held_event_types_add(&held->types, type, name, format);
}

void held_blocks_feed_sample(struct held_blocks *held, const struct perf_event_header *sample,
			     const struct raw_head *raw)
{
	struct held_event event;

	if (!held_event_read(&held->types, sample, raw, &event))
		return;
	if (held->stacks)
		event.site = probe_point_is_return(event.type->point)
				     ? held_stacks_add_sample(held->stacks, &event, sample, raw)
				     : 0;
	feed(held, &event);
}

void held_blocks_feed_task(struct held_blocks *held, const struct perf_event_header *record)
{
	struct held_event event;

	if (held_event_read_task(record, &event))
		feed(held, &event);
}

/* --- what is held --- */

uint64_t held_blocks_applied_ns(const struct held_blocks *held)
{
	return held->applied_ns;
}

pid_t held_blocks_next_process(const struct held_blocks *held, pid_t pid)
{
	const struct held_process *process = pid ? find_process(held, pid) : NULL;

	process = pid && process ? process->hh.next : held->processes;
	return process ? process->pid : 0;
}

size_t held_blocks_nr(const struct held_blocks *held, pid_t pid)
{
	const struct held_process *process = find_process(held, pid);

	return process ? process->blocks.nr : 0;
}

const struct held_block *held_blocks_next(const struct held_blocks *held, pid_t pid, size_t *at)
{
	const struct held_process *process = find_process(held, pid);

	while (process && *at < process->blocks.nr_entries) {
		const struct held_block *block = &process->blocks.entries[(*at)++];

		if (block->address)
			return block;
	}
	return NULL;
}

uint64_t held_blocks_left_out(const struct held_blocks *held)
{
	return held->nr_left_out;
}

uint64_t held_blocks_without_stack(const struct held_blocks *held)
{
	return held->nr_without_stack;
}

uint64_t held_blocks_out_of_order(const struct held_blocks *held)
{
	return held->nr_out_of_order;
}
