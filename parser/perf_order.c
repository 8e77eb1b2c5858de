/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_order.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAPACITY 256

static struct perf_queued *entry_of(const struct perf_run *run, size_t i)
{
	return &run->entries[(run->first + i) & (run->capacity - 1)];
}

void perf_order_deinit(struct perf_order *order)
{
	for (size_t i = 0; i < order->nr_runs; i++) {
		struct perf_run *run = &order->runs[i];

		for (size_t j = 0; j < run->nr; j++)
			perf_chunk_release(entry_of(run, j)->record.chunk);
		free(run->entries);
	}
	for (size_t i = 0; i < order->nr; i++)
		perf_chunk_release(order->slots[order->heap[i].slot].record.chunk);
	free(order->heap);
	free(order->slots);
	*order = (struct perf_order){0};
}

static bool before(const struct perf_order_key *a, const struct perf_order_key *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->sequence < b->sequence;
}

static int reserve(struct perf_order *order)
{
	size_t capacity = order->capacity ? 2 * order->capacity : 1024;
	struct perf_order_key *heap;
	struct perf_queued *slots;

	if (order->nr < order->capacity)
		return 0;
	heap = reallocarray(order->heap, capacity, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	order->heap = heap;
	slots = reallocarray(order->slots, capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	order->slots = slots;
	for (size_t i = order->capacity; i < capacity; i++)
		heap[i].slot = i;
	order->capacity = capacity;
	return 0;
}

static int push_to_heap(struct perf_order *order, const struct perf_queued *entry)
{
	struct perf_order_key key = {.time_ns = entry->time_ns, .sequence = entry->sequence};
	size_t i, parent;

	if (reserve(order))
		return -ENOMEM;
	key.slot = order->heap[order->nr].slot;
	order->slots[key.slot] = *entry;
	for (i = order->nr++; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (!before(&key, &order->heap[parent]))
			break;
		order->heap[i] = order->heap[parent];
	}
	order->heap[i] = key;
	order->current = NULL;
	return 0;
}

static int grow_run(struct perf_run *run)
{
	size_t capacity = run->capacity ? 2 * run->capacity : FIRST_CAPACITY;
	struct perf_queued *entries = reallocarray(NULL, capacity, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr; i++)
		entries[i] = *entry_of(run, i);
	free(run->entries);
	run->entries = entries;
	run->capacity = capacity;
	run->first = 0;
	return 0;
}

/*
 * The run that an entry of that time belongs to: of those that it does not come too late for, the
 * one that ends last. That is the one its CPU's records went to before. NULL: there is none.
 */
static struct perf_run *choose_run(struct perf_order *order, uint64_t time_ns)
{
	struct perf_run *best = &order->runs[order->last_run];

	if (best->nr > 0 && best->last_ns <= time_ns)
		return best;
	best = NULL;
	for (size_t i = 0; i < order->nr_runs; i++) {
		struct perf_run *run = &order->runs[i];
		uint64_t last_ns = run->nr ? run->last_ns : 0;

		if (last_ns <= time_ns && (!best || last_ns > (best->nr ? best->last_ns : 0)))
			best = run;
	}
	if (!best && order->nr_runs < PERF_ORDER_MAX_RUNS)
		best = &order->runs[order->nr_runs++];
	if (best)
		order->last_run = (size_t)(best - order->runs);
	return best;
}

static int push_to_run(struct perf_order *order, struct perf_run *run,
		       const struct perf_queued *entry)
{
	if (run->nr == run->capacity && grow_run(run))
		return -ENOMEM;
	*entry_of(run, run->nr) = *entry;
	if (run->nr++ == 0)
		order->current = NULL; /* this may be the first now */
	run->last_ns = entry->time_ns;
	return 0;
}

int perf_order_push(struct perf_order *order, struct perf_queued *entry)
{
	struct perf_run *run = choose_run(order, entry->time_ns);
	int err;

	entry->sequence = order->nr_pushed;
	err = run ? push_to_run(order, run, entry) : push_to_heap(order, entry);
	if (err)
		return err;
	order->nr_pushed++;
	perf_chunk_hold(entry->record.chunk);
	if (entry->time_ns > order->newest_ns)
		order->newest_ns = entry->time_ns;
	return 0;
}

void perf_order_finish_round(struct perf_order *order)
{
	order->due_ns = order->boundary_ns;
	order->boundary_ns = order->newest_ns;
}

void perf_order_finish(struct perf_order *order)
{
	order->due_ns = UINT64_MAX;
}

/*
 * Fills the gap at the top: the sooner of its children moves up, and so on to the bottom, where
 * @last, which came from there, belongs most often.
 */
static void sift(struct perf_order_key *heap, size_t nr, struct perf_order_key last)
{
	size_t i = 0, child, parent;

	while ((child = 2 * i + 2) < nr) {
		child -= before(&heap[child - 1], &heap[child]);
		heap[i] = heap[child];
		i = child;
	}
	if (child == nr) { /* an only child */
		heap[i] = heap[child - 1];
		i = child - 1;
	}
	for (; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (!before(&last, &heap[parent]))
			break;
		heap[i] = heap[parent];
	}
	heap[i] = last;
}

static void pop_from_heap(struct perf_order *order, struct perf_queued *ret)
{
	size_t slot = order->heap[0].slot;

	*ret = order->slots[slot];
	order->nr--;
	if (order->nr > 0)
		sift(order->heap, order->nr, order->heap[order->nr]);
	order->heap[order->nr].slot = slot;
}

static bool is_before_next(const struct perf_order *order, const struct perf_queued *entry)
{
	if (entry->time_ns != order->next_ns)
		return entry->time_ns < order->next_ns;
	return entry->sequence < order->next_sequence;
}

/* Finds the run that has the first entry, if it is not in the heap, and what comes after that run.
 */
static void find_first(struct perf_order *order)
{
	const struct perf_queued *first = NULL;

	order->current = NULL;
	order->next_ns = order->next_sequence = UINT64_MAX;
	if (order->nr > 0) {
		order->next_ns = order->heap[0].time_ns;
		order->next_sequence = order->heap[0].sequence;
	}
	for (size_t i = 0; i < order->nr_runs; i++) {
		const struct perf_queued *entry;

		if (order->runs[i].nr == 0)
			continue;
		entry = entry_of(&order->runs[i], 0);
		if (is_before_next(order, entry) &&
		    (!first || entry->time_ns < first->time_ns ||
		     (entry->time_ns == first->time_ns && entry->sequence < first->sequence))) {
			if (first) {
				order->next_ns = first->time_ns;
				order->next_sequence = first->sequence;
			}
			first = entry;
			order->current = &order->runs[i];
		} else if (is_before_next(order, entry)) {
			order->next_ns = entry->time_ns;
			order->next_sequence = entry->sequence;
		}
	}
}

const struct perf_queued *perf_order_ahead(const struct perf_order *order, size_t distance)
{
	const struct perf_run *run = order->current;

	return run && run->nr > distance ? entry_of(run, distance) : NULL;
}

bool perf_order_pop(struct perf_order *order, struct perf_queued *ret)
{
	struct perf_run *run = order->current;

	if (!run || run->nr == 0 || !is_before_next(order, entry_of(run, 0))) {
		find_first(order);
		run = order->current;
	}
	if (!run) {
		if (order->nr == 0 || order->heap[0].time_ns > order->due_ns)
			return false;
		pop_from_heap(order, ret);
		return true;
	}
	if (entry_of(run, 0)->time_ns > order->due_ns)
		return false;
	*ret = *entry_of(run, 0);
	run->first = (run->first + 1) & (run->capacity - 1);
	run->nr--;
	return true;
}
