/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes away the probes after a recording. For each event and link the kernel waits until no CPU
 * runs its programs any more, one after the other, which takes seconds on a busy machine, and a
 * process that ends while it has one open waits, too. So a child does it, "leak-end": it has all
 * that the recorder has open, and the recorder need not wait for it. Whoever kills the child has
 * the kernel close what it has open; what is left in tracefs then, the next recorder removes.
 *
 *	removal_begin();     the child has all descriptors; it waits
 *	...                  the recorder closes its own, which costs nothing now
 *	removal_finish();    the child goes on; it may outlive the recorder
 */
#ifndef LEAKTOOLS_RECORDER_REMOVAL_H
#define LEAKTOOLS_RECORDER_REMOVAL_H

#include "probes/plan/probe_set.h"

struct removal {
	struct probe_set *sets[2]; /* whose probes in tracefs are ours */
	pid_t pid;		   /* of the child; 0: there is none, and this process removes */
	int child_fd;		   /* ready to read when it has ended */
	int go_fd;		   /* closed: it goes on, which our own end does, too */
	int messages_fd;	   /* what it says */
};

/* Forks the child. The sets must last until the other call. */
void removal_begin(struct removal *ret, struct probe_set *first, struct probe_set *second);

/*
 * Removes the probes. When @deadline_ns has passed, or @signal_fd tells of a signal (-1: none can),
 * the child is left to it. Returns 0, or a negative errno where something could not be removed,
 * reported.
 */
int removal_finish(struct removal *removal, int signal_fd, uint64_t deadline_ns);

#endif
