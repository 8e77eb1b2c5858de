/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that outlives the recorder, if only by a moment: a stopped process stays stopped when
 * its recorder is killed, so somebody has to be left who lets it go on. The guard waits for the
 * recorder's end and then continues every target that is marked as stopped (gate_shared.h).
 *
 * Where the whole machine is recorded, what the recorder waits for may be what was stopped: who
 * serves the file system that it writes to, for instance. There the guard also lets go on who has
 * been stopped for too long.
 */
#ifndef LEAKTOOLS_RECORDER_GUARD_H
#define LEAKTOOLS_RECORDER_GUARD_H

#include "recorder/gate_shared.h"

#include <stdbool.h>
#include <sys/types.h>

struct guard {
	pid_t pid;
	int recorder_fd; /* the recorder's end of a socket pair, open as long as it lives */
};

/*
 * Starts the guard over @shared, a shared mapping, and waits until it is ready. Call it while this
 * process has one thread and no events open: the guard keeps nothing open but its end of the pair.
 * Returns 0 or a negative errno.
 */
int guard_start(struct guard *ret, struct gate_shared *shared);

/* Ends the guard at once: nobody is stopped any more, nor can be. */
void guard_stop(struct guard *guard);

/*
 * Continues the targets that are marked as stopped; those that wait for events (GATE_FORKS_WANTED),
 * or for a file to be looked at, only with @all. Returns how long the longest had been.
 */
unsigned long long guard_continue_targets(struct gate_shared *shared, bool all);

#endif
