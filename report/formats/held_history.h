/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collects the held amount over time while a recording is read: the total at up to HELD_POINTS
 * times, the time of the peak, and the amount of each stack at the peak. One pass suffices, so a
 * pipe can be read. A new peak copies nothing: a stack saves its amount when it first changes after
 * the peak.
 *
 * It takes 48 bytes per stack and constant time per change.
 */
#ifndef LEAKTOOLS_REPORT_HELD_HISTORY_H
#define LEAKTOOLS_REPORT_HELD_HISTORY_H

#include "common/size_range.h"
#include "parser/calls/heap_tracker.h"

#define HELD_POINTS 128

struct held_amount {
	uint64_t bytes, blocks; /* blocks of unknown size count 0 bytes */
};

struct held_history;

/*
 * Counts only blocks of @size, if it is not NULL; @size must outlive the history. Returns NULL if
 * memory is exhausted.
 */
struct held_history *held_history_create(const struct size_range *size);
void held_history_destroy(struct held_history *history);

/* A heap_observer.on_change() with the history as its context. */
void held_history_change(void *history, const struct heap_change *change);

/* Likewise a heap_observer.on_time(): the amount is the same from the last change to @time_ns. */
void held_history_time(void *history, uint64_t time_ns);

/* Returns 0, or -ENOMEM if memory ran out and the history is incomplete. */
int held_history_error(const struct held_history *history);

/*
 * The amounts at the end of each period. Period i ends at *@ret_start_ns + (i + 1) *
 * *@ret_period_ns; the last one may be incomplete. *@ret_nr is 0 if neither an amount nor the
 * recording's begin or end is known.
 */
const struct held_amount *held_history_points(const struct held_history *history, size_t *ret_nr,
					      uint64_t *ret_start_ns, uint64_t *ret_period_ns);

/* The largest amount of bytes, at the first time that it was reached. */
struct held_amount held_history_peak(const struct held_history *history, uint64_t *ret_time_ns);
/* What a stack held at that time. */
struct held_amount held_history_at_peak(const struct held_history *history, uint32_t stack_id);
/* All stacks that held anything have smaller numbers. */
uint32_t held_history_max_stack(const struct held_history *history);

#endif
