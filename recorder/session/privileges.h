/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the recorder may do once it records: after that, only what is open already is of use to
 * whoever takes us over.
 */
#ifndef LEAKTOOLS_RECORDER_PRIVILEGES_H
#define LEAKTOOLS_RECORDER_PRIVILEGES_H

#include <stdbool.h>

/* What is still needed. */
struct privileges_kept {
	bool kill;	/* to let go on who was stopped */
	bool perfmon;	/* to open events */
	bool read_code; /* of other users' processes, in containers, replaced on disk */
};

/* Drops all capabilities but these, of those that we have. That it cannot is reported. */
void privileges_drop(const struct privileges_kept *kept);

/*
 * Where processes keep all CPUs busy, whoever drains the rings waits for its turn while they fill
 * up, and then holds the processes back for longer than its work takes. Only this thread; without
 * the right to, things are as they were.
 */
void privileges_raise_priority(void);

#endif
