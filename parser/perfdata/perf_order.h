/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts records in time order. The rings of several CPUs are drained one after the other, so that
 * the file is sorted within a ring's part only; a FINISHED_ROUND record says that each ring was
 * drained once. What came before the last round but one then precedes all that is still to come,
 * and is given out (Linux 6.1, tools/perf/util/session.c, process_finished_round()).
 *
 * So the records come in runs that are sorted already, one for each CPU and round, and those of one
 * CPU follow each other: they are queued run by run and merged. What does not fit any of so many
 * runs, because it is in no order at all, goes into a heap over (time, place in the recording). No
 * more is held than two rounds bring.
 *
 * Of a run, only the next few records are known one by one: what follows them is told by where it
 * begins and ends in memory. An entry for each record would be memory traffic of its own.
 */
#ifndef LEAKTOOLS_PARSER_PERF_ORDER_H
#define LEAKTOOLS_PARSER_PERF_ORDER_H

#include "parser/bytes/perf_chunks.h"

struct perf_event;
struct perf_events;

#define PERF_ORDER_MAX_RUNS 64
#define PERF_ORDER_AHEAD    16 /* records, the one taken out last included; a power of two */

struct perf_queued {
	uint64_t time_ns;
	uint64_t sequence;	   /* its place in the recording; perf_order_push() sets it */
	struct perf_record record; /* its chunk is held */
	struct perf_event *event;  /* NULL: it belongs to none that is known */
};

/* Records that follow each other in time as they do in memory and in the recording. */
struct perf_span {
	struct perf_chunk *chunk; /* is held */
	uint8_t *bytes, *end;
	uint64_t offset;   /* of the first one */
	uint64_t sequence; /* of the first one */
	uint64_t end_sequence;
};

/* A queue of records in time order: rings both. */
struct perf_run {
	struct perf_queued ahead[PERF_ORDER_AHEAD]; /* the first ones; empty: so is the run */
	size_t first_ahead, nr_ahead;
	struct perf_span *spans; /* what follows them */
	size_t first, nr;
	size_t capacity;   /* a power of two, or 0 */
	uint64_t last_ns;  /* of them all */
	uint64_t ahead_ns; /* of the last one ahead */
};

/* What the heap sorts by, so that it need not move the entries themselves. */
struct perf_order_key {
	uint64_t time_ns;
	uint64_t sequence;
	size_t slot;
};

struct perf_order {
	const struct perf_events *events; /* to find records' events by, and their times */
	struct perf_run runs[PERF_ORDER_MAX_RUNS];
	size_t nr_runs;
	size_t last_run; /* that was pushed to */

	struct perf_order_key *heap; /* behind the @nr in use, the keys of the unused slots */
	struct perf_queued *slots;
	size_t nr, capacity;

	/* The run that has the first of all entries, and the next one elsewhere; NULL: not known.
	 */
	struct perf_run *current;
	uint64_t next_ns, next_sequence;

	uint64_t nr_pushed;   /* which is the next entry's place */
	uint64_t newest_ns;   /* the latest time queued so far */
	uint64_t boundary_ns; /* newest_ns at the last round */
	uint64_t due_ns;      /* all up to this time may go; 0: nothing */
};

void perf_order_deinit(struct perf_order *order);

/*
 * Holds @entry's chunk. Its event and its time must be what @events say of its record. Returns 0 or
 * -ENOMEM.
 */
int perf_order_push(struct perf_order *order, struct perf_queued *entry);

/* Whether @record, of that time, follows the last one that was pushed in every respect. */
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

/* Pushes @nr records of which that is so, @size_bytes together; the last is of that time. */
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

/* The time of the last record pushed that others may continue. */
static inline uint64_t perf_order_last(const struct perf_order *order)
{
	return order->runs[order->last_run].last_ns;
}

/* A FINISHED_ROUND was read, or the end was: then everything is due. */
void perf_order_finish_round(struct perf_order *order);
void perf_order_finish(struct perf_order *order);

/* An entry that is likely to be popped after @distance others, or NULL: as far as is known. */
static inline const struct perf_queued *perf_order_ahead(const struct perf_order *order,
							 size_t distance)
{
	const struct perf_run *run = order->current;

	return run && run->nr_ahead > distance
		       ? &run->ahead[(run->first_ahead + distance) & (PERF_ORDER_AHEAD - 1)]
		       : NULL;
}

/*
 * Takes out the earliest entry that is due, or returns NULL. It is valid until the next call, its
 * chunk held until the caller releases it.
 */
const struct perf_queued *perf_order_pop(struct perf_order *order);

#endif
