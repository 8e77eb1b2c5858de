/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/heap_anomalies.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAPACITY 64

/*
 * The flush calls free() for the cached pointers and for the cache, in one function;
 * __malloc_arena_thread_freeres has 0x130 bytes in glibc 2.36.
 */
#define FLUSH_FUNCTION_BYTES 0x1000

void heap_anomalies_init(struct heap_anomalies *anomalies, uint64_t *counts)
{
	*anomalies = (struct heap_anomalies){.counts = counts, .withdrawn = ANOMALY_NONE};
}

void heap_anomalies_deinit(struct heap_anomalies *anomalies)
{
	free(anomalies->list);
	free(anomalies->notes);
	*anomalies = (struct heap_anomalies){0};
}

static int grow(struct heap_anomalies *anomalies)
{
	size_t capacity = anomalies->capacity ? anomalies->capacity * 2 : FIRST_CAPACITY;
	struct heap_anomaly *list;
	struct anomaly_note *notes;

	list = reallocarray(anomalies->list, capacity, sizeof(*list));
	if (!list)
		return -ENOMEM;
	anomalies->list = list;
	notes = reallocarray(anomalies->notes, capacity, sizeof(*notes));
	if (!notes)
		return -ENOMEM;
	anomalies->notes = notes;
	anomalies->capacity = capacity;
	return 0;
}

/* Gets a free index. Returns 0 or -ENOMEM. */
static int reserve_slot(struct heap_anomalies *anomalies, size_t *ret)
{
	int err = 0;

	if (anomalies->withdrawn != ANOMALY_NONE) {
		*ret = anomalies->withdrawn;
		anomalies->withdrawn = anomalies->notes[*ret].previous;
		return 0;
	}
	if (anomalies->nr == anomalies->capacity)
		err = grow(anomalies);
	if (!err)
		*ret = anomalies->nr++;
	return err;
}

int heap_anomalies_add_final(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly)
{
	size_t index;

	if (anomalies->counts[anomaly->kind] - anomalies->unlisted[anomaly->kind] <
	    ANOMALY_MAX_LISTED)
		return heap_anomalies_add(anomalies, anomaly, 0, ANOMALY_NONE, &index);
	anomalies->counts[anomaly->kind]++;
	anomalies->unlisted[anomaly->kind]++;
	return 0;
}

int heap_anomalies_add(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly,
		       uint64_t caller, size_t previous, size_t *ret)
{
	int err = reserve_slot(anomalies, ret);

	if (err)
		return err;
	anomalies->list[*ret] = *anomaly;
	anomalies->notes[*ret] = (struct anomaly_note){.caller = caller, .previous = previous};
	anomalies->counts[anomaly->kind]++;
	return 0;
}

/* Withdraws one anomaly, whose index becomes free. Returns the index of the one linked before it.
 */
static size_t withdraw(struct heap_anomalies *anomalies, size_t index)
{
	struct anomaly_note *note = &anomalies->notes[index];
	size_t previous = note->previous;

	anomalies->counts[anomalies->list[index].kind]--;
	note->withdrawn = true;
	note->previous = anomalies->withdrawn;
	anomalies->withdrawn = index;
	return previous;
}

size_t heap_anomalies_withdraw_chain(struct heap_anomalies *anomalies, size_t last)
{
	size_t nr = 0;

	for (; last != ANOMALY_NONE; nr++)
		last = withdraw(anomalies, last);
	return nr;
}

static int compare_by_time(const void *a, const void *b)
{
	const struct heap_anomaly *x = a, *y = b;

	if (x->op.sequence != y->op.sequence)
		return x->op.sequence < y->op.sequence ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

void heap_anomalies_compact(struct heap_anomalies *anomalies)
{
	size_t nr = 0;

	for (size_t i = 0; i < anomalies->nr; i++) {
		if (anomalies->notes[i].withdrawn)
			continue;
		anomalies->list[nr] = anomalies->list[i];
		anomalies->notes[nr] = (struct anomaly_note){.previous = ANOMALY_NONE};
		nr++;
	}
	if (nr)
		qsort(anomalies->list, nr, sizeof(*anomalies->list), compare_by_time);
	anomalies->nr = nr;
	anomalies->withdrawn = ANOMALY_NONE;
}

void free_run_other_free(struct free_run *run, enum free_origin origin)
{
	/*
	 * If a flushed pointer's free was lost, the block is still held, and the flush looks like
	 * its free.
	 */
	if (run->last != ANOMALY_NONE && origin != FREE_BY_ALLOCATOR)
		run->closed = true;
}

static bool continues(const struct free_run *run, enum free_origin origin)
{
	return run->last != ANOMALY_NONE && !run->closed && run->origin == origin;
}

size_t free_run_previous(const struct free_run *run, enum free_origin origin)
{
	return continues(run, origin) ? run->last : ANOMALY_NONE;
}

void free_run_add(struct free_run *run, enum free_origin origin, size_t index)
{
	*run = (struct free_run){.last = index, .origin = origin};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Withdraws the last part of a run with known callers: the frees by one function. */
static size_t withdraw_allocators_run(struct heap_anomalies *anomalies, size_t last)
{
	uint64_t last_caller = anomalies->notes[last].caller;
	size_t nr = 0;

	for (; last != ANOMALY_NONE; nr++) {
		if (distance(anomalies->notes[last].caller, last_caller) >= FLUSH_FUNCTION_BYTES)
			break;
		last = withdraw(anomalies, last);
	}
	return nr;
}

static void prepend_chain(struct heap_anomalies *anomalies, size_t last, size_t *chain)
{
	size_t first = last;

	while (anomalies->notes[first].previous != ANOMALY_NONE)
		first = anomalies->notes[first].previous;
	anomalies->notes[first].previous = *chain;
	*chain = last;
}

size_t free_run_end(struct free_run *run, struct heap_anomalies *anomalies, bool exited,
		    size_t *doubtful)
{
	struct free_run ended = *run;

	*run = FREE_RUN_EMPTY;
	if (ended.last == ANOMALY_NONE)
		return 0;
	if (ended.origin == FREE_BY_ALLOCATOR)
		return withdraw_allocators_run(anomalies, ended.last);
	if (!exited)
		return 0;
	/* The cache itself, which no probed function allocated, is freed last. */
	if (anomalies->list[ended.last].kind == ANOMALY_FREE_UNKNOWN)
		return heap_anomalies_withdraw_chain(anomalies, ended.last);
	/*
	 * Otherwise the cache's address was known: one of the program's blocks was there earlier.
	 * If glibc then does not abort the process, this was the flush.
	 */
	prepend_chain(anomalies, ended.last, doubtful);
	return 0;
}
