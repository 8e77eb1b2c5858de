/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Removes the probes after a recording. For each event and link the kernel waits until no CPU runs
 * its programs any more, one after the other. On a busy machine that takes seconds, and a process
 * that ends with one open waits, too. So a child, "leak-end", does it. It has all descriptors of
 * the recorder, so the recorder need not wait. A child of its own, "leak-close",
 * closes the last descriptors, so that SIGKILL for either disturbs nothing. If leak-end is killed,
 * the next recorder removes what is left in tracefs.
 *
 *	removal_begin();     the child has all descriptors, and waits
 *	...                  the recorder closes its own, which costs nothing now
 *	removal_finish();    the child removes the probes; it may outlive the recorder
 */
#ifndef LEAKTOOLS_RECORDER_REMOVAL_H
#define LEAKTOOLS_RECORDER_REMOVAL_H

#include "probes/plan/probe_set.h"

struct removal {
	struct probe_set *sets[2]; /* their registered probes are ours */
	pid_t pid;	 /* the child; 0: there is none, and this process removes the probes */
	int child_fd;	 /* readable when the child has ended */
	int go_fd;	 /* closing it starts the child, also when this process ends */
	int messages_fd; /* the child's messages */
};

/* Forks the child. The sets must last until the other call. */
void removal_begin(struct removal *ret, struct probe_set *first, struct probe_set *second);

/*
 * Removes the probes. After @deadline_ns, or when @signal_fd (-1: none) has a signal, the child is
 * left to finish alone. Returns 0, or a negative errno if something could not be removed, reported.
 */
int removal_finish(struct removal *removal, int signal_fd, uint64_t deadline_ns);

#endif
