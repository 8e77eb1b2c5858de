/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/memory_usage.h"

#include "common/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * leakrec samples 256 at a time, so ended ones make room. Others of a hostile file are left out.
 */
#define MAX_PROCESSES 4096
#define MAX_SAMPLED   256 /* MEMORY_MAX_PROCESSES in recorder/output/memory_samples.h */
/* More than any process has, so that the sums of all fit into 63 bits. */
#define MAX_BYTES (UINT64_C(1) << 45)

/*
 * What an allocator takes for a block beside its size: a header and rounding. glibc's blocks take
 * up to 31 bytes more, for 1 byte (malloc.c, MINSIZE); allocators with classes of sizes round up by
 * a quarter.
 */
#define MAX_BLOCK_OVERHEAD 32
#define ROUNDING_PART	   4

struct entry {
	struct memory_process process; /* first: memory_usage_next() */
	UT_hash_handle hh;
};

struct memory_usage {
	struct entry *entries;
	uint64_t seed;	       /* of their hashes */
	uint64_t turns_before; /* in former files of the session */
	uint64_t last_turn;    /* of any process; a turn samples them all */
	uint64_t cleared_turn; /* when ended ones were last dropped */
	size_t nr_dropped;     /* that ended or executed another program */
};

struct memory_usage *memory_usage_create(void)
{
	struct memory_usage *usage = calloc(1, sizeof(*usage));

	if (usage)
		usage->seed = hash_seed();
	return usage;
}

static void drop(struct memory_usage *usage, struct entry *entry)
{
	HASH_DEL(usage->entries, entry);
	free(entry);
}

void memory_usage_destroy(struct memory_usage *usage)
{
	struct entry *entry, *next;

	if (!usage)
		return;
	HASH_ITER (hh, usage->entries, entry, next)
		drop(usage, entry);
	free(usage);
}

void memory_usage_begin(struct memory_usage *usage)
{
	usage->turns_before = usage->last_turn;
}

static struct entry *find(const struct memory_usage *usage, pid_t pid)
{
	struct entry *entry;

	HASH_FIND_BYHASHVALUE(hh, usage->entries, &pid, sizeof(pid),
			      hash_number((uint64_t)pid, usage->seed), entry);
	return entry;
}

void memory_usage_restart(struct memory_usage *usage, pid_t pid)
{
	struct entry *entry = find(usage, pid);

	if (!entry)
		return;
	usage->nr_dropped++;
	drop(usage, entry);
}

/* Bounds a value of a hostile file, so that sums do not overflow. */
static uint64_t limit(uint64_t bytes)
{
	return bytes < MAX_BYTES ? bytes : MAX_BYTES;
}

static uint64_t rss(const struct memory_point *point)
{
	return point->bytes[MEMORY_ANON] + point->bytes[MEMORY_FILE] + point->bytes[MEMORY_SHARED];
}

/*
 * Adds a point to the curve. If the curve is full, drops every other point, and from then on adds
 * only every other sample.
 */
static void add_point(struct memory_process *process, const struct memory_point *point)
{
	if ((process->nr_samples - 1) % process->step)
		return;
	if (process->nr_points == MEMORY_MAX_POINTS) {
		process->nr_points /= 2;
		for (size_t i = 0; i < process->nr_points; i++)
			process->points[i] = process->points[2 * i];
		process->step *= 2;
	}
	process->points[process->nr_points++] = *point;
}

static struct entry *get(struct memory_usage *usage, pid_t pid)
{
	struct entry *entry = find(usage, pid);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->process.pid = pid;
	entry->process.step = 1;
	HASH_ADD_BYHASHVALUE(hh, usage->entries, process.pid, sizeof(pid),
			     hash_number((uint64_t)pid, usage->seed), entry);
	if (hash_added(entry))
		return entry;
	free(entry);
	return NULL;
}

/* Those that a whole turn has not sampled. The current one may not have come to all. */
static void drop_ended(struct memory_usage *usage)
{
	struct entry *entry, *next;

	if (usage->cleared_turn == usage->last_turn)
		return;
	usage->cleared_turn = usage->last_turn;
	HASH_ITER (hh, usage->entries, entry, next) {
		if (entry->process.turn + 1 >= usage->last_turn)
			continue;
		usage->nr_dropped++;
		drop(usage, entry);
	}
}

int memory_usage_add(struct memory_usage *usage, const struct perf_sample *sample,
		     const struct heap_tracker *heaps)
{
	pid_t pid = sample->origin.pid;
	struct memory_point point = {.time_ns = sample->origin.time_ns};
	struct memory_process *process;
	struct entry *entry;

	if (!find(usage, pid) && HASH_COUNT(usage->entries) == MAX_PROCESSES) {
		drop_ended(usage);
		if (HASH_COUNT(usage->entries) == MAX_PROCESSES)
			return 0;
	}
	entry = get(usage, pid);
	if (!entry)
		return -ENOMEM;
	process = &entry->process;
	snprintf(process->comm, sizeof(process->comm), "%s", heap_tracker_comm_of(heaps, pid));
	for (size_t i = 0; i < MEMORY_NR_VALUES; i++)
		point.bytes[i] = limit(sample->args[i]);
	point.recorded = heap_tracker_held_memory(heaps, pid);
	point.recorded.bytes = limit(point.recorded.bytes);
	point.recorded.most_bytes = limit(point.recorded.most_bytes);
	process->turn = usage->turns_before + (uint32_t)sample->mark_number;
	if (process->turn > usage->last_turn)
		usage->last_turn = process->turn;
	if (!process->nr_samples++)
		process->first = point;
	process->last = point;
	if (rss(&point) > rss(&process->peak))
		process->peak = point;
	add_point(process, &point);
	return 0;
}

static int64_t grown(const struct memory_process *process, enum memory_value value)
{
	return (int64_t)process->last.bytes[value] - (int64_t)process->first.bytes[value];
}

/* What an allocator may take from the kernel for blocks. */
static int64_t gross_bytes(uint64_t bytes, uint64_t blocks)
{
	return (int64_t)(limit(bytes + bytes / ROUNDING_PART) + MAX_BLOCK_OVERHEAD * limit(blocks));
}

static void add_growth(struct memory_balance *balance, const struct memory_process *process)
{
	const struct held_memory *first = &process->first.recorded, *last = &process->last.recorded;
	int64_t recorded = (int64_t)last->bytes - (int64_t)first->bytes;

	balance->nr_processes++;
	if (process->last.time_ns > balance->until_ns)
		balance->until_ns = process->last.time_ns;
	balance->recorded += recorded;
	balance->other += grown(process, MEMORY_ANON) + grown(process, MEMORY_SWAP) - recorded;
	balance->file += grown(process, MEMORY_FILE);
	balance->shared += grown(process, MEMORY_SHARED);
	balance->swap -= grown(process, MEMORY_SWAP);
	balance->data += grown(process, MEMORY_DATA);
	balance->allocated += gross_bytes(last->all_bytes - first->all_bytes,
					  last->all_blocks - first->all_blocks);
	balance->most += gross_bytes(last->most_bytes, last->blocks);
}

void memory_usage_balance(const struct memory_usage *usage, struct memory_balance *ret)
{
	struct entry *entry, *next;

	*ret = (struct memory_balance){.nr_ended = usage->nr_dropped};
	HASH_ITER (hh, usage->entries, entry, next) {
		const struct memory_process *process = &entry->process;

		if (process->turn < usage->last_turn)
			ret->nr_ended++;
		else if (process->nr_samples > 1)
			add_growth(ret, process);
	}
	ret->rss = ret->recorded + ret->other + ret->file + ret->shared + ret->swap;
}

uint64_t memory_usage_most(const struct memory_usage *usage)
{
	struct entry *entry, *next;
	uint64_t most = 0;

	/* There may be others, and what ended ones had is forgotten. */
	if (usage->nr_dropped || HASH_COUNT(usage->entries) >= MAX_SAMPLED)
		return 0;
	HASH_ITER (hh, usage->entries, entry, next) {
		const struct memory_process *process = &entry->process;

		most += rss(&process->peak) + process->peak.bytes[MEMORY_SWAP] +
			process->last.bytes[MEMORY_SWAP];
	}
	return most;
}

const struct memory_process *memory_usage_next(const struct memory_usage *usage,
					       const struct memory_process *prev)
{
	const struct entry *entry = prev ? ((const struct entry *)prev)->hh.next : usage->entries;

	return entry ? &entry->process : NULL;
}
