/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What changed between moments of a recording: for each interval and each stack, blocks that were
 * added less blocks that were released in it. A release counts for the stack that had allocated the
 * block, so a stack that released more than it allocated is negative, and one that released all it
 * allocated is not there.
 *
 * Intervals end where marks are, each so many seconds, or are one, from a time to another. Each is
 * told of when it ends; memory grows with the stacks that are active in one.
 */
#ifndef LEAKTOOLS_PARSER_INTERVALS_H
#define LEAKTOOLS_PARSER_INTERVALS_H

#include "parser/calls/heap_tracker.h"

struct interval_change {
	uint32_t stack_id;
	int64_t blocks, bytes; /* blocks of unknown size count as 0 bytes */
};

/* leakrec's by its number, or the program's own, whose number is 0, by its text. */
struct interval_mark {
	uint64_t number;
	const char *text;
};

struct interval {
	uint64_t begin_ns, end_ns; /* the recording's times; the end is outside */
	/* Without number and text (NULL) it is none, but an end of the recording, or a time. */
	struct interval_mark begin_mark, end_mark;
	int64_t blocks, bytes;		       /* all changes */
	const struct interval_change *changes; /* largest first; those that are 0 left out */
	size_t nr_changes;
};

/* What is to be done with an interval that has ended; @interval is valid meanwhile only. */
struct interval_observer {
	void *context;
	void (*on_interval)(void *context, const struct interval *interval);
};

struct intervals;

/* NULL: out of memory. */
struct intervals *intervals_create(const struct interval_observer *observer);
void intervals_destroy(struct intervals *intervals);

/* Before all else: one interval, by times since the recording's start, instead of those between
 * marks; or intervals of @every_ns. */
void intervals_set_range(struct intervals *intervals, uint64_t from_ns, uint64_t to_ns);
void intervals_set_length(struct intervals *intervals, uint64_t every_ns);

/*
 * The recording, in time order: its first event, marks, changes. A change that is told of late,
 * when its interval has ended, counts in the next.
 */
void intervals_begin(struct intervals *intervals, uint64_t time_ns);
void intervals_mark(struct intervals *intervals, uint64_t time_ns,
		    const struct interval_mark *mark);
void intervals_change(struct intervals *intervals, const struct heap_change *change);

/* After the last event, which was at @end_ns. Returns 0 or -ENOMEM (also if it was met before). */
int intervals_finish(struct intervals *intervals, uint64_t end_ns);

#endif
