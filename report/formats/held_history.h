/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was held over time, kept while a recording is read: the sum at HELD_POINTS times at most,
 * the moment when most was held, and what each stack held then. One reading is enough, of a pipe as
 * well: at a new peak nothing is copied; a stack's amount is kept when it first changes after the
 * peak.
 *
 * Memory: 48 bytes for each stack. The time of each change is constant.
 */
#ifndef LEAKTOOLS_REPORT_HELD_HISTORY_H
#define LEAKTOOLS_REPORT_HELD_HISTORY_H

#include "common/size_range.h"
#include "parser/calls/heap_tracker.h"

#define HELD_POINTS 128

struct held_amount {
	uint64_t bytes, blocks; /* of unknown size: 0 bytes */
};

struct held_history;

/* Of blocks of @size only, if it is not NULL; it must outlive the history. NULL: out of memory. */
struct held_history *held_history_create(const struct size_range *size);
void held_history_destroy(struct held_history *history);

/* A heap_observer.on_change(), with the history as its context. */
void held_history_change(void *history, const struct heap_change *change);

/* 0, or -ENOMEM if that has happened meanwhile: the history is not whole then. */
int held_history_error(const struct held_history *history);

/*
 * The amount at the end of each period; the last period may yet last. *@ret_nr is 0 if nothing has
 * happened. Period i ends at *@ret_start_ns + (i + 1) * *@ret_period_ns.
 */
const struct held_amount *held_history_points(const struct held_history *history, size_t *ret_nr,
					      uint64_t *ret_start_ns, uint64_t *ret_period_ns);

/* The most bytes held at a time; of several such moments the first. */
struct held_amount held_history_peak(const struct held_history *history, uint64_t *ret_time_ns);
/* What blocks from that stack were at that moment. */
struct held_amount held_history_at_peak(const struct held_history *history, uint32_t stack_id);
/* Stacks that held something have smaller numbers. */
uint32_t held_history_max_stack(const struct held_history *history);

#endif
