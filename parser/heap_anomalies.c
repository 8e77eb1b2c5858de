/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/heap_anomalies.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAPACITY 64

/*
 * The flush has one call of free for the cached pointers and one for the cache, in one function;
 * __malloc_arena_thread_freeres has 0x130 bytes in glibc 2.36.
 */
#define FLUSH_FUNCTION_BYTES 0x1000

void heap_anomalies_init(struct heap_anomalies *anomalies, uint64_t *counts)
{
	*anomalies = (struct heap_anomalies){.counts = counts};
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

int heap_anomalies_add(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly,
		       uint64_t caller, size_t previous, size_t *ret)
{
	if (anomalies->nr == anomalies->capacity) {
		int err = grow(anomalies);

		if (err)
			return err;
	}
	*ret = anomalies->nr++;
	anomalies->list[*ret] = *anomaly;
	anomalies->notes[*ret] = (struct anomaly_note){.caller = caller, .previous = previous};
	anomalies->counts[anomaly->kind]++;
	return 0;
}

static void withdraw(struct heap_anomalies *anomalies, size_t index)
{
	anomalies->notes[index].withdrawn = true;
	anomalies->counts[anomalies->list[index].kind]--;
}

void heap_anomalies_withdraw_chain(struct heap_anomalies *anomalies, size_t last)
{
	for (size_t i = last; i != ANOMALY_NONE; i = anomalies->notes[i].previous)
		withdraw(anomalies, i);
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
	anomalies->nr = nr;
}

void free_run_other_free(struct free_run *run, enum free_origin origin)
{
	/* A flushed pointer whose free was lost is still held, and its flush looks like a free. */
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

static size_t withdraw_run(const struct free_run *run, struct heap_anomalies *anomalies)
{
	uint64_t last_caller = anomalies->notes[run->last].caller;
	size_t nr = 0;

	for (size_t i = run->last; i != ANOMALY_NONE; i = anomalies->notes[i].previous) {
		if (distance(anomalies->notes[i].caller, last_caller) >= FLUSH_FUNCTION_BYTES)
			break;
		withdraw(anomalies, i);
		nr++;
	}
	return nr;
}

size_t free_run_end(struct free_run *run, struct heap_anomalies *anomalies, bool exited)
{
	bool is_flush = false;
	size_t nr;

	if (run->last == ANOMALY_NONE)
		return 0;
	if (run->origin == FREE_BY_ALLOCATOR)
		is_flush = true;
	else if (run->origin == FREE_ORIGIN_UNKNOWN) /* the cache itself is freed last */
		is_flush = exited && anomalies->list[run->last].kind == ANOMALY_FREE_UNKNOWN;
	nr = is_flush ? withdraw_run(run, anomalies) : 0;
	*run = FREE_RUN_EMPTY;
	return nr;
}
