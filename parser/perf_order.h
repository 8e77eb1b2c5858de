/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts records in time order. The rings of several CPUs are drained one after the other, so that
 * the file is sorted within a ring's part only; a FINISHED_ROUND record says that each ring was
 * drained once. What came before the last round but one then precedes all that is still to come,
 * and is given out (Linux 6.1, tools/perf/util/session.c, process_finished_round()).
 *
 * A heap over (time, place in the recording): no more is held than two rounds bring.
 */
#ifndef LEAKTOOLS_PARSER_PERF_ORDER_H
#define LEAKTOOLS_PARSER_PERF_ORDER_H

#include "parser/perf_chunks.h"

struct perf_event;

struct perf_queued {
	uint64_t time_ns;
	struct perf_record record; /* its chunk is held */
	struct perf_event *event;
};

/* What the heap sorts by, so that it need not move the entries themselves. */
struct perf_order_key {
	uint64_t time_ns;
	uint64_t sequence; /* the entry's place in the recording */
	size_t slot;
};

struct perf_order {
	struct perf_order_key *heap; /* behind the @nr in use, the keys of the unused slots */
	struct perf_queued *slots;
	size_t nr, capacity;
	uint64_t nr_pushed;   /* which is the next entry's place */
	uint64_t newest_ns;   /* the latest time queued so far */
	uint64_t boundary_ns; /* newest_ns at the last round */
	uint64_t due_ns;      /* all up to this time may go; 0: nothing */
};

void perf_order_deinit(struct perf_order *order);

/* Holds @entry's chunk. Returns 0 or -ENOMEM. */
int perf_order_push(struct perf_order *order, const struct perf_queued *entry);

/* A FINISHED_ROUND was read, or the end was: then everything is due. */
void perf_order_finish_round(struct perf_order *order);
void perf_order_finish(struct perf_order *order);

/*
 * Takes out the earliest entry that is due. Returns true, and the caller releases its chunk; or
 * false.
 */
bool perf_order_pop(struct perf_order *order, struct perf_queued *ret);

#endif
