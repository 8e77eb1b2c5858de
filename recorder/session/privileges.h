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
	bool read_ends; /* how processes ended */
};

/* Drops all other capabilities. A failure is reported. */
void privileges_drop(const struct privileges_kept *kept);

/*
 * For root's process that waits, and starts leakscan: it keeps no capabilities, but a program that
 * it executes gets those that take a snapshot and that give up the rest. A failure is reported.
 */
void privileges_drop_for_scanner(void);

/*
 * Raises the priority of this thread for set-up. On busy CPUs it would otherwise wait for its turn
 * after each event that it opens. Without the right to do so, it does nothing. Returns the niceness
 * before, for privileges_restore_priority(): new threads inherit it.
 */
int privileges_raise_priority(void);
void privileges_restore_priority(int before);

/*
 * Lowers the priority of this thread to what draining the rings takes. It stays above others, whose
 * rings would fill up while this thread waits for its turn: they would be stopped for longer than
 * draining takes. @before is what privileges_raise_priority() returned.
 */
void privileges_ease_priority(int before);

/*
 * Raises the priority of all threads of this process, also after privileges_drop(): the end of a
 * recording waits for the thread that writes.
 */
void privileges_raise_all(void);

#endif
