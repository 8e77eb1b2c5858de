/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drops the privileges that recording does not need, so that an attacker who takes the recorder
 * over gets only what is open already.
 */
#ifndef LEAKTOOLS_RECORDER_PRIVILEGES_H
#define LEAKTOOLS_RECORDER_PRIVILEGES_H

#include <stdbool.h>

/* Which privileges are still needed. */
struct privileges_kept {
	bool kill;	/* to continue stopped processes */
	bool perfmon;	/* to open events */
	bool read_code; /* files of other users, in containers, or replaced on disk */
};

/* Drops all other capabilities. A failure is reported. */
void privileges_drop(const struct privileges_kept *kept);

/*
 * Raises the priority of this thread, which opens the events and drains the rings. On busy CPUs it
 * would otherwise wait for its turn after each event, and while the rings fill up: the processes
 * would be stopped for longer than draining takes. Without the right to do so, it does nothing.
 * Returns the priority before, for privileges_restore_priority(): new threads inherit it.
 */
int privileges_raise_priority(void);
void privileges_restore_priority(int before);

#endif
