/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/ended_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

/* Linux's PID_MAX_LIMIT. Larger ids, which only a made-up recording has, share bits with others. */
#define NR_IDS	   (1u << 22)
#define ID_BITS	   64
#define SETTLED_NS UINT64_C(1000000000) /* no event comes so late */
/* What is looked at in vain, for each thread that ends. */
#define LOOKS_A_THREAD 64

struct names {
	uint64_t *bits; /* by pid or tid: is named */
	size_t nr_blocks;
	uint64_t settled_ns;
};

static void add_name(struct names *names, pid_t id)
{
	uint32_t bit = (uint32_t)id % NR_IDS;

	names->bits[bit / ID_BITS] |= UINT64_C(1) << bit % ID_BITS;
}

static bool is_named(const struct names *names, pid_t id)
{
	uint32_t bit = (uint32_t)id % NR_IDS;

	return names->bits[bit / ID_BITS] >> bit % ID_BITS & 1;
}

static void add_op(struct names *names, const struct heap_op *op)
{
	add_name(names, op->pid);
	add_name(names, op->tid);
}

static void add_block(void *context, const struct heap_block *block)
{
	struct names *names = context;

	names->nr_blocks++;
	add_op(names, &block->allocated);
}

static void add_region(void *context, const struct region *region)
{
	add_op(context, &region->mapped);
}

static void find_names(struct names *names, const struct heap_spaces *spaces,
		       const struct heap_anomalies *anomalies)
{
	const struct heap_space *space = NULL;

	DL_FOREACH (spaces->all, space) {
		if (space->heap)
			heap_for_each_own(space->heap, add_block, names);
		if (space->regions)
			region_map_for_each_own(space->regions, add_region, names);
	}
	for (size_t i = 0; i < anomalies->nr; i++) {
		const struct heap_anomaly *anomaly = &anomalies->list[i];

		add_op(names, &anomaly->op);
		add_op(names, &anomaly->block.allocated);
		add_op(names, &anomaly->released);
	}
}

static bool has_settled(const struct names *names, uint64_t ended_ns)
{
	return ended_ns && ended_ns < names->settled_ns;
}

static bool is_needed(const struct names *names, const struct thread *thread)
{
	const struct process *process = thread->process;

	/* Of some only the name is known. */
	if (!process || thread->alive)
		return true;
	/* Of one whose end was lost, no time is known: its id or its process began anew. */
	if ((thread->ended_ns && !has_settled(names, thread->ended_ns)) ||
	    is_named(names, thread->tid))
		return true;
	/* It names its process. */
	return process->nr_threads > 0 && thread->tid == process->pid;
}

static void remove_threads(struct process_table *table, const struct names *names)
{
	struct thread **link = &table->active, *thread, *next;

	while (*link) {
		if (is_needed(names, *link))
			link = &(*link)->next_active;
		else
			*link = (*link)->next_active;
	}
	HASH_ITER (hh, table->threads, thread, next)
		if (!is_needed(names, thread))
			process_table_remove_thread(table, thread);
}

static void remove_processes(struct process_table *table, const struct names *names)
{
	struct process *process, *next;

	HASH_ITER (hh, table->processes, process, next) {
		if (process->threads || process->space || is_named(names, process->pid) ||
		    !has_settled(names, process->ended_ns))
			continue;
		HASH_DEL(table->processes, process);
		free(process);
	}
}

int ended_tasks_remove(struct process_table *table, const struct heap_anomalies *anomalies,
		       uint64_t now_ns)
{
	struct names names = {.bits = calloc(NR_IDS / ID_BITS, sizeof(*names.bits))};
	size_t nr_left;

	if (!names.bits)
		return -ENOMEM;
	names.settled_ns = now_ns > SETTLED_NS ? now_ns - SETTLED_NS : 0;
	find_names(&names, &table->spaces, anomalies);
	remove_threads(table, &names);
	remove_processes(table, &names);
	nr_left = HASH_COUNT(table->threads);
	table->clear_at = nr_left + MIN_ENDED_TASKS + (nr_left + names.nr_blocks) / LOOKS_A_THREAD;
	free(names.bits);
	return 0;
}
