/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes during intervals of a recording: for each interval and each stack, blocks allocated minus
 * blocks released. A release counts for the stack that allocated the block. So a stack that
 * releases more than it allocates is negative, and one that releases all that it allocates is left
 * out.
 *
 * Intervals end at marks, or have a fixed length, or there is one between two times. Each is
 * reported when it ends. Memory grows with the stacks that are active in one interval.
 */
#ifndef LEAKTOOLS_PARSER_INTERVALS_H
#define LEAKTOOLS_PARSER_INTERVALS_H

#include "parser/calls/heap_tracker.h"

struct interval_change {
	uint32_t stack_id;
	int64_t blocks, bytes; /* blocks of unknown size count as 0 bytes */
};

/* A mark of leakrec has a number, one of the program has a text and the number 0. */
struct interval_mark {
	uint64_t number;
	const char *text;
};

struct interval {
	uint64_t begin_ns, end_ns; /* the recording's times; the end is exclusive */
	/* Without number and text (NULL): an end of the recording, or a time. */
	struct interval_mark begin_mark, end_mark;
	int64_t blocks, bytes;		       /* all changes */
	const struct interval_change *changes; /* largest first, without zeros */
	size_t nr_changes;
};

/* Gets each interval when it ends. @interval is valid during the call only. */
struct interval_observer {
	void *context;
	void (*on_interval)(void *context, const struct interval *interval);
};

struct intervals;

/* NULL: out of memory. */
struct intervals *intervals_create(const struct interval_observer *observer);
void intervals_destroy(struct intervals *intervals);

/*
 * Call these first, for one interval by times since the recording's start, or for intervals of
 * @every_ns, instead of marks.
 */
void intervals_set_range(struct intervals *intervals, uint64_t from_ns, uint64_t to_ns);
void intervals_set_length(struct intervals *intervals, uint64_t every_ns);

/*
 * The recording in time order: its first event, marks, changes. A change that comes after its
 * interval has ended counts in the next one.
 */
void intervals_begin(struct intervals *intervals, uint64_t time_ns);
void intervals_mark(struct intervals *intervals, uint64_t time_ns,
		    const struct interval_mark *mark);
void intervals_change(struct intervals *intervals, const struct heap_change *change);

/* Call it after the last event, at @end_ns. Returns 0 or -ENOMEM (also for an earlier failure). */
int intervals_finish(struct intervals *intervals, uint64_t end_ns);

#endif
