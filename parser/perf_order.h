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
 */
#ifndef LEAKTOOLS_PARSER_PERF_ORDER_H
#define LEAKTOOLS_PARSER_PERF_ORDER_H

#include "parser/perf_chunks.h"

struct perf_event;

#define PERF_ORDER_MAX_RUNS 64

struct perf_queued {
	uint64_t time_ns;
	uint64_t sequence;	   /* its place in the recording; perf_order_push() sets it */
	struct perf_record record; /* its chunk is held */
	struct perf_event *event;
};

/* A queue of entries in time order: a ring. */
struct perf_run {
	struct perf_queued *entries;
	size_t first, nr;
	size_t capacity; /* a power of two, or 0 */
	uint64_t last_ns;
};

/* What the heap sorts by, so that it need not move the entries themselves. */
struct perf_order_key {
	uint64_t time_ns;
	uint64_t sequence;
	size_t slot;
};

struct perf_order {
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

/* Holds @entry's chunk. Returns 0 or -ENOMEM. */
int perf_order_push(struct perf_order *order, struct perf_queued *entry);

/* A FINISHED_ROUND was read, or the end was: then everything is due. */
void perf_order_finish_round(struct perf_order *order);
void perf_order_finish(struct perf_order *order);

/* An entry that is likely to be popped after @distance others, or NULL. */
const struct perf_queued *perf_order_ahead(const struct perf_order *order, size_t distance);

/*
 * Takes out the earliest entry that is due. Returns true, and the caller releases its chunk; or
 * false.
 */
bool perf_order_pop(struct perf_order *order, struct perf_queued *ret);

#endif
