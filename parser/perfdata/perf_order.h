/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts records in time order. The rings of the CPUs are drained one after the other, so only the
 * records of one ring are in order in the file. A FINISHED_ROUND record says that each ring was
 * drained once. All records before the last round but one precede those still to come, and are due
 * (Linux 6.1, tools/perf/util/session.c, process_finished_round()).
 *
 * So the file consists of sorted runs, one for each CPU and round, and the runs of one CPU continue
 * each other. Records are queued run by run, and runs are merged. A record that fits none of the
 * runs, because the file is in no order, goes into a heap sorted by (time, position). At most two
 * rounds of records are held.
 *
 * Only the next few records of a run have an entry each. The rest is a span of memory, because an
 * entry for each record would cost memory traffic.
 */
#ifndef LEAKTOOLS_PARSER_PERF_ORDER_H
#define LEAKTOOLS_PARSER_PERF_ORDER_H

#include "parser/bytes/perf_chunks.h"

struct perf_event;
struct perf_events;

#define PERF_ORDER_MAX_RUNS 64
#define PERF_ORDER_AHEAD    16 /* records, including the last one taken out; a power of two */

struct perf_queued {
	uint64_t time_ns;
	uint64_t sequence;	   /* its position in the recording; perf_order_push() sets it */
	struct perf_record record; /* its chunk is held */
	struct perf_event *event;  /* NULL: unknown */
};

/*
 * Records that follow each other directly in memory and in the recording, in time order; not
 * decoded yet.
 */
struct perf_span {
	struct perf_chunk *chunk; /* is held */
	uint8_t *bytes, *end;
	uint64_t offset;   /* of the first one */
	uint64_t sequence; /* of the first one */
	uint64_t end_sequence;
};

/* A queue of records in time order. Both arrays are rings. */
struct perf_run {
	struct perf_queued
		ahead[PERF_ORDER_AHEAD]; /* the first ones; if there are none, the run is empty */
	size_t first_ahead, nr_ahead;
	struct perf_span *spans; /* the records after them */
	size_t first, nr;
	size_t capacity;   /* a power of two, or 0 */
	uint64_t last_ns;  /* of the last record */
	uint64_t ahead_ns; /* of the last record ahead */
};

/* The heap moves keys instead of entries. */
struct perf_order_key {
	uint64_t time_ns;
	uint64_t sequence;
	size_t slot;
};

struct perf_order {
	const struct perf_events *events; /* to find records' events and times */
	struct perf_run runs[PERF_ORDER_MAX_RUNS];
	size_t nr_runs;
	size_t last_run; /* the last run that a record was pushed to */

	/*
	 * Entries that fit no run: a heap of keys, and the entries, in slots that never move. After
	 * the @nr used keys come those of unused slots.
	 */
	struct perf_order_key *heap;
	struct perf_queued *slots;
	size_t nr, capacity;

	/*
	 * The run with the first of all entries (NULL: not known, or the first is in the heap), and
	 * time and sequence of the next entry outside of it.
	 */
	struct perf_run *current;
	uint64_t next_ns, next_sequence;

	uint64_t nr_pushed;   /* the next entry's sequence */
	uint64_t newest_ns;   /* the latest time queued so far */
	uint64_t boundary_ns; /* newest_ns at the last round */
	uint64_t due_ns;      /* records up to this time are due; 0: none */
};

void perf_order_deinit(struct perf_order *order);

/*
 * Pushes @entry and holds its chunk. Its event and time must be those that @events give for its
 * record. Returns 0 or -ENOMEM.
 */
int perf_order_push(struct perf_order *order, struct perf_queued *entry);

/* True if @record directly follows the last pushed one, in time, in memory and in the recording. */
static inline bool perf_order_continues(const struct perf_order *order,
					const struct perf_record *record, uint64_t time_ns)
{
	const struct perf_run *run = &order->runs[order->last_run];
	const struct perf_span *span;

	if (run->nr == 0 || run->last_ns > time_ns)
		return false;
	span = &run->spans[(run->first + run->nr - 1) & (run->capacity - 1)];
	return span->end == record->bytes && span->chunk == record->chunk &&
	       span->end_sequence == order->nr_pushed;
}

/* Pushes @nr records for which perf_order_continues() holds, of @size_bytes together; @time_ns is
 * that of the last one. */
static inline void perf_order_continue(struct perf_order *order, size_t nr, size_t size_bytes,
				       uint64_t time_ns)
{
	struct perf_run *run = &order->runs[order->last_run];
	struct perf_span *span = &run->spans[(run->first + run->nr - 1) & (run->capacity - 1)];

	span->end += size_bytes;
	order->nr_pushed += nr;
	span->end_sequence = order->nr_pushed;
	run->last_ns = time_ns;
	if (time_ns > order->newest_ns)
		order->newest_ns = time_ns;
}

/* The time of the last pushed record that others may continue. */
static inline uint64_t perf_order_last(const struct perf_order *order)
{
	return order->runs[order->last_run].last_ns;
}

/* Call these at a FINISHED_ROUND, and at the end, when all records become due. */
void perf_order_finish_round(struct perf_order *order);
void perf_order_finish(struct perf_order *order);

/* The entry that will probably be popped after @distance others. NULL: not known. */
static inline const struct perf_queued *perf_order_ahead(const struct perf_order *order,
							 size_t distance)
{
	const struct perf_run *run = order->current;

	return run && run->nr_ahead > distance
		       ? &run->ahead[(run->first_ahead + distance) & (PERF_ORDER_AHEAD - 1)]
		       : NULL;
}

/*
 * Takes out the earliest due entry, or returns NULL. The entry is valid until the next call. The
 * caller releases its chunk.
 */
const struct perf_queued *perf_order_pop(struct perf_order *order);

#endif
