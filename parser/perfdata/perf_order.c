/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_order.h"

#include "parser/records/perf_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16 /* spans */

static struct perf_queued *entry_of(struct perf_run *run, size_t i)
{
	return &run->ahead[(run->first_ahead + i) & (PERF_ORDER_AHEAD - 1)];
}

static struct perf_span *span_of(const struct perf_run *run, size_t i)
{
	return &run->spans[(run->first + i) & (run->capacity - 1)];
}

void perf_order_deinit(struct perf_order *order)
{
	for (size_t i = 0; i < order->nr_runs; i++) {
		struct perf_run *run = &order->runs[i];

		for (size_t j = 0; j < run->nr_ahead; j++)
			perf_chunk_release(entry_of(run, j)->record.chunk);
		for (size_t j = 0; j < run->nr; j++)
			perf_chunk_release(span_of(run, j)->chunk);
		free(run->spans);
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
	perf_chunk_hold(entry->record.chunk);
	order->current = NULL;
	return 0;
}

static int grow_run(struct perf_run *run)
{
	size_t capacity = run->capacity ? 2 * run->capacity : FIRST_CAPACITY;
	struct perf_span *spans = reallocarray(NULL, capacity, sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr; i++)
		spans[i] = *span_of(run, i);
	free(run->spans);
	run->spans = spans;
	run->capacity = capacity;
	run->first = 0;
	return 0;
}

/*
 * Chooses the run for an entry: of those that end before its time, the one that ends last. That is
 * the run of its CPU. NULL: there is none.
 */
static struct perf_run *choose_run(struct perf_order *order, uint64_t time_ns)
{
	struct perf_run *best = &order->runs[order->last_run];

	if (best->nr_ahead > 0 && best->last_ns <= time_ns)
		return best;
	best = NULL;
	for (size_t i = 0; i < order->nr_runs; i++) {
		struct perf_run *run = &order->runs[i];
		uint64_t last_ns = run->nr_ahead ? run->last_ns : 0;

		if (last_ns <= time_ns && (!best || last_ns > (best->nr_ahead ? best->last_ns : 0)))
			best = run;
	}
	if (!best && order->nr_runs < PERF_ORDER_MAX_RUNS)
		best = &order->runs[order->nr_runs++];
	if (best)
		order->last_run = (size_t)(best - order->runs);
	return best;
}

static void add_ahead(struct perf_run *run, const struct perf_queued *entry)
{
	*entry_of(run, run->nr_ahead++) = *entry;
	run->ahead_ns = entry->time_ns;
	perf_chunk_hold(entry->record.chunk);
}

/*
 * Adds a record to the end of @run. The first one gets an entry at once; later ones are a span, of
 * which entries are read when their turn comes near.
 */
static int push_to_run(struct perf_order *order, struct perf_run *run,
		       const struct perf_queued *entry)
{
	const struct perf_record *record = &entry->record;

	if (run->nr_ahead == 0) {
		run->last_ns = entry->time_ns;
		add_ahead(run, entry);
		order->current = NULL; /* this run may come first now */
		return 0;
	}
	if (run->nr == run->capacity && grow_run(run))
		return -ENOMEM;
	*span_of(run, run->nr++) = (struct perf_span){
		.chunk = record->chunk,
		.bytes = record->bytes,
		.end = record->bytes + record->header.size,
		.offset = record->offset,
		.sequence = entry->sequence,
		.end_sequence = entry->sequence + 1,
	};
	run->last_ns = entry->time_ns;
	perf_chunk_hold(record->chunk);
	return 0;
}

/*
 * Reads the first record of @span. Returns false if it is malformed: the file was changed
 * meanwhile.
 */
static inline bool read_first(const struct perf_order *order, const struct perf_run *run,
			      const struct perf_span *span, struct perf_queued *ret)
{
	struct perf_record *record = &ret->record;
	uint64_t time_ns;

	memcpy(&record->header, span->bytes, sizeof(record->header));
	if (record->header.size < sizeof(record->header) ||
	    record->header.size > span->end - span->bytes)
		return false;
	record->bytes = span->bytes;
	record->offset = span->offset;
	record->chunk = span->chunk;
	ret->sequence = span->sequence;
	ret->event = perf_events_find(order->events, record);
	time_ns = ret->event ? perf_event_record_time(ret->event, record) : 0;
	ret->time_ns = time_ns < run->ahead_ns ? run->ahead_ns : time_ns;
	return true;
}

static void drop_span(struct perf_run *run)
{
	perf_chunk_release(span_of(run, 0)->chunk);
	run->first = (run->first + 1) & (run->capacity - 1);
	run->nr--;
}

/* Reads the records ahead of the last one taken out, into the run's entries. */
static void look_ahead(const struct perf_order *order, struct perf_run *run)
{
	while (run->nr > 0 && run->nr_ahead < PERF_ORDER_AHEAD - 1) {
		struct perf_span *span = span_of(run, 0);
		struct perf_queued *entry = entry_of(run, run->nr_ahead);
		size_t size_bytes;

		if (!read_first(order, run, span, entry)) {
			drop_span(run);
			continue;
		}
		run->nr_ahead++;
		run->ahead_ns = entry->time_ns;
		perf_chunk_hold(span->chunk);
		size_bytes = entry->record.header.size;
		/* Queued records have left the caches by now. */
		perf_chunks_fetch_ahead(span->bytes, size_bytes);
		span->bytes += size_bytes;
		span->offset += size_bytes;
		span->sequence++;
		if (span->bytes == span->end)
			drop_span(run);
	}
}

int perf_order_push(struct perf_order *order, struct perf_queued *entry)
{
	struct perf_run *run;
	int err;

	if (perf_order_continues(order, &entry->record, entry->time_ns)) {
		perf_order_continue(order, 1, entry->record.header.size, entry->time_ns);
		return 0;
	}
	run = choose_run(order, entry->time_ns);
	entry->sequence = order->nr_pushed;
	err = run ? push_to_run(order, run, entry) : push_to_heap(order, entry);
	if (err)
		return err;
	order->nr_pushed++;
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
 * Fills the gap at the top: the earlier child moves up, down to the bottom, where @last came from
 * and mostly belongs.
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

static const struct perf_queued *pop_from_heap(struct perf_order *order)
{
	size_t slot = order->heap[0].slot;

	order->nr--;
	if (order->nr > 0)
		sift(order->heap, order->nr, order->heap[order->nr]);
	order->heap[order->nr].slot = slot;
	return &order->slots[slot];
}

static bool is_before_next(const struct perf_order *order, const struct perf_queued *entry)
{
	if (entry->time_ns != order->next_ns)
		return entry->time_ns < order->next_ns;
	return entry->sequence < order->next_sequence;
}

/* Finds the run with the first entry, if that is not in the heap, and the entry after that run. */
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

		if (order->runs[i].nr_ahead == 0)
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

const struct perf_queued *perf_order_pop(struct perf_order *order)
{
	struct perf_run *run = order->current;
	const struct perf_queued *entry;

	if (!run || run->nr_ahead == 0 || !is_before_next(order, entry_of(run, 0))) {
		find_first(order);
		run = order->current;
	}
	if (!run)
		return order->nr == 0 || order->heap[0].time_ns > order->due_ns
			       ? NULL
			       : pop_from_heap(order);
	entry = entry_of(run, 0);
	if (entry->time_ns > order->due_ns)
		return NULL;
	run->first_ahead++;
	run->nr_ahead--;
	look_ahead(order, run);
	return entry;
}
