/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_order.h"

#include <errno.h>
#include <stdlib.h>

void perf_order_deinit(struct perf_order *order)
{
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

int perf_order_push(struct perf_order *order, const struct perf_queued *entry)
{
	struct perf_order_key key = {.time_ns = entry->time_ns, .sequence = order->nr_pushed};
	size_t i, parent;

	if (reserve(order))
		return -ENOMEM;
	order->nr_pushed++;
	key.slot = order->heap[order->nr].slot;
	order->slots[key.slot] = *entry;
	for (i = order->nr++; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (!before(&key, &order->heap[parent]))
			break;
		order->heap[i] = order->heap[parent];
	}
	order->heap[i] = key;
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

bool perf_order_pop(struct perf_order *order, struct perf_queued *ret)
{
	size_t slot;

	if (order->nr == 0 || order->heap[0].time_ns > order->due_ns)
		return false;
	slot = order->heap[0].slot;
	*ret = order->slots[slot];
	order->nr--;
	if (order->nr > 0)
		sift(order->heap, order->nr, order->heap[order->nr]);
	order->heap[order->nr].slot = slot;
	return true;
}
