/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_order.h"

#include <errno.h>
#include <stdlib.h>

void perf_order_deinit(struct perf_order *order)
{
	for (size_t i = 0; i < order->nr; i++)
		perf_chunk_release(order->heap[i].record.chunk);
	free(order->heap);
	*order = (struct perf_order){0};
}

static bool before(const struct perf_queued *a, const struct perf_queued *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->sequence < b->sequence;
}

static int reserve(struct perf_order *order)
{
	size_t capacity = order->capacity ? 2 * order->capacity : 1024;
	struct perf_queued *heap;

	if (order->nr < order->capacity)
		return 0;
	heap = reallocarray(order->heap, capacity, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	order->heap = heap;
	order->capacity = capacity;
	return 0;
}

int perf_order_push(struct perf_order *order, const struct perf_queued *entry)
{
	struct perf_queued queued = *entry;
	size_t i, parent;

	if (reserve(order))
		return -ENOMEM;
	queued.sequence = order->nr_pushed++;
	for (i = order->nr++; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (!before(&queued, &order->heap[parent]))
			break;
		order->heap[i] = order->heap[parent];
	}
	order->heap[i] = queued;
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

bool perf_order_pop(struct perf_order *order, struct perf_queued *ret)
{
	struct perf_queued last;
	size_t i = 0, child;

	if (order->nr == 0 || order->heap[0].time_ns > order->due_ns)
		return false;
	*ret = order->heap[0];
	last = order->heap[--order->nr];
	while ((child = 2 * i + 1) < order->nr) {
		if (child + 1 < order->nr && before(&order->heap[child + 1], &order->heap[child]))
			child++;
		if (!before(&order->heap[child], &last))
			break;
		order->heap[i] = order->heap[child];
		i = child;
	}
	order->heap[i] = last;
	return true;
}
