/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that outlives the recorder, if only by a moment: a stopped process stays stopped when
 * its recorder is killed, so somebody has to be left who lets it go on. The watchdog waits for the
 * recorder's end and then continues every target that is marked as stopped (target_table_shared.h).
 *
 * What the recorder waits for may be what was stopped: the reader of its output, who serves the
 * file system that it writes to, or the terminal. It may be stopped or debugged itself. So the
 * guard also lets go on who has been stopped for TARGET_MAX_STOP_NS. It shows that it is awake in
 * watchdog_ns, for programs stop nobody without it.
 *
 * Whom a debugger has attached to while backpressure had it stopped is the debugger's; it is
 * continued when the debugger has gone, by the watchdog if the recorder has gone, too.
 */
#ifndef LEAKTOOLS_RECORDER_WATCHDOG_H
#define LEAKTOOLS_RECORDER_WATCHDOG_H

#include "recorder/target_table/target_table_shared.h"

#include <stdbool.h>
#include <sys/types.h>

struct watchdog {
	pid_t pid;
	int recorder_fd; /* the recorder's end of a socket pair, open as long as it lives */
};

/*
 * Starts the watchdog over @shared, a shared mapping, and waits until it is ready. Call it while
 * this process has one thread and no events open: the watchdog keeps nothing open but its end of
 * the pair. Returns 0 or a negative errno.
 */
int watchdog_start(struct watchdog *ret, struct target_table *shared);

/*
 * Ends the watchdog at once: nobody is stopped any more, nor can be. One that still waits for a
 * debugger is left to end by itself.
 */
void watchdog_stop(struct watchdog *watchdog, const struct target_table *shared);

/* True if a target is marked as stopped. */
bool watchdog_has_stopped(const struct target_table *shared);

/*
 * Continues the targets that are marked as stopped; those that wait for set-up work only with @all.
 * Returns how long the longest had been, of those that had filled a ring. Safe in signal handlers.
 */
unsigned long long watchdog_continue_targets(struct target_table *shared, bool all);

/* Continues the targets whose stop is about to get too long. */
void watchdog_continue_overdue(struct target_table *shared, unsigned long long now_ns);

#endif
