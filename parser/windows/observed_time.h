/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time in which allocations and frees were observed: the windows of leakrec --budget. It is a
 * clock that stands still between windows. What a program does at a steady rate is steady by this
 * clock, however long the windows are and however far apart.
 *
 * Memory is bounded. Of more than OBSERVED_MAX_WINDOWS windows, pairs of neighbours are merged: the
 * clock then runs evenly, but more slowly, from the beginning of the first to the end of the
 * second.
 */
#ifndef LEAKTOOLS_PARSER_OBSERVED_TIME_H
#define LEAKTOOLS_PARSER_OBSERVED_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBSERVED_MAX_WINDOWS 8192

struct observed_window {
	uint64_t open_ns, close_ns;
	uint64_t before_ns;   /* observed before it */
	uint64_t observed_ns; /* in it: all of it, unless it was merged */
	/* The same as what the program would have needed without probes, at its mean pace. */
	uint64_t paced_before_ns, paced_ns;
};

/* Zero it before use. Without windows, all time is observed. */
struct observed_time {
	struct observed_window *windows; /* in time order; the last one may be open */
	size_t nr, capacity;
	uint64_t nr_opened;
	bool is_open;	 /* the last window's close_ns is not known yet */
	bool has_paces;	 /* of the windows */
	bool is_unpaced; /* the pace of the last window that has closed is unknown */
};

void observed_time_deinit(struct observed_time *time);

/*
 * A window opens at @time_ns. One that opens before the end of the last one continues it. Returns 0
 * or -ENOMEM.
 */
int observed_time_open(struct observed_time *time, uint64_t time_ns);
/*
 * The window closes. Without an open window, nothing happens. @pace: the program's pace in the
 * window, in 1/1000 of its mean pace; 0: unknown. Then it is taken to be 1000, or the pace of the
 * next window if that is known.
 */
void observed_time_close(struct observed_time *time, uint64_t time_ns, uint64_t pace);

/*
 * No window is open at @time_ns. Until the first one opens, all time counts as observed, unless
 * this was called. Returns 0 or -ENOMEM.
 */
int observed_time_begin_shut(struct observed_time *time, uint64_t time_ns);

/* How long was observed before @time_ns. */
uint64_t observed_time_before(const struct observed_time *time, uint64_t time_ns);

/*
 * The same, each window counted by its pace: a program that is slowed down to a tenth by probes
 * does in ten seconds of windows what it does in one second otherwise.
 */
uint64_t observed_time_paced_before(const struct observed_time *time, uint64_t time_ns);

/* The number of windows that opened up to @time_ns. Merged ones count as one. */
size_t observed_time_nr_before(const struct observed_time *time, uint64_t time_ns);

/* True if a part of the time between the two was not observed. */
bool observed_time_has_gap(const struct observed_time *time, uint64_t from_ns, uint64_t to_ns);

#endif
