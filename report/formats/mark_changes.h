/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps what changed between the marks of a recording, while it is read: of each interval, the
 * stacks that changed most. Memory is limited: of many intervals, the last ones are kept.
 */
#ifndef LEAKTOOLS_REPORT_MARK_CHANGES_H
#define LEAKTOOLS_REPORT_MARK_CHANGES_H

#include "common/size_range.h"
#include "parser/analysis/intervals.h"

#define MARK_CHANGES_MAX	100  /* intervals */
#define MARK_CHANGES_MAX_STACKS 2000 /* in an interval */

struct marked_interval {
	uint64_t begin_ns, end_ns;
	char *begin, *end; /* the names of the marks; NULL: an end of the recording */
	int64_t bytes, blocks;
	struct interval_change *changes; /* the largest first */
	size_t nr_changes;
};

/* Zero it before mark_changes_init(). */
struct mark_changes {
	struct intervals *intervals;   /* to be set as analysis->intervals */
	const struct size_range *size; /* counts only blocks of these sizes; NULL: all */
	struct marked_interval *list;
	size_t nr;
	bool failed;
};

/* @size may be NULL; it must outlive the changes. Returns 0 or -ENOMEM. */
int mark_changes_init(struct mark_changes *changes, const struct size_range *size);
void mark_changes_deinit(struct mark_changes *changes);

/* As a heap_observer's on_change(). */
void mark_changes_change(struct mark_changes *changes, const struct heap_change *change);

/* Call it after the last change. Returns 0 or -ENOMEM. */
int mark_changes_finish(struct mark_changes *changes, uint64_t end_ns);

#endif
