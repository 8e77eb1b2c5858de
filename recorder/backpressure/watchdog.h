/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that outlives the recorder, if only by a moment: a stopped process stays stopped when
 * its recorder is killed, so somebody has to be left who lets it go on. The guard waits for the
 * recorder's end and then continues every target that is marked as stopped (target_table_shared.h).
 *
 * What the recorder waits for may be what was stopped: the reader of its output, who serves the
 * file system that it writes to, or the terminal. It may be stopped or debugged itself. So the
 * guard also lets go on who has been stopped for GATE_MAX_STOP_NS. It shows that it is awake in
 * guard_ns, for programs stop nobody without it.
 *
 * Whom a debugger has attached to while the gate had it stopped is the debugger's; it is continued
 * when the debugger has gone, by the guard if the recorder has gone, too.
 */
#ifndef LEAKTOOLS_RECORDER_WATCHDOG_H
#define LEAKTOOLS_RECORDER_WATCHDOG_H

#include "recorder/target_table/target_table_shared.h"

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

/*
 * Ends the guard at once: nobody is stopped any more, nor can be. One that still waits for a
 * debugger is left to end by itself.
 */
void guard_stop(struct guard *guard, const struct gate_shared *shared);

/* True if a target is marked as stopped. */
bool guard_has_stopped(const struct gate_shared *shared);

/*
 * Continues the targets that are marked as stopped; those that wait for set-up work only with @all.
 * Returns how long the longest had been, of those that had filled a ring. Safe in signal handlers.
 */
unsigned long long guard_continue_targets(struct gate_shared *shared, bool all);

/* Continues the targets whose stop is about to get too long. */
void guard_continue_overdue(struct gate_shared *shared, unsigned long long now_ns);

#endif
