/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watchdog, a process that outlives the recorder for a moment. A stopped process stays stopped
 * when its recorder is killed. So the watchdog waits for the recorder's end and then continues
 * every target that is marked as stopped (target_table.h).
 *
 * A stopped target may be what the recorder waits for: the reader of its output, a file system's
 * server, the terminal. The recorder may also be stopped or debugged itself. So the watchdog
 * continues every target that has been stopped for TARGET_MAX_STOP_NS. It shows regularly that it
 * is awake; without that, programs stop nothing. If stops are forbidden when it starts, it only
 * waits for the recorder's end.
 *
 * A debugger may attach to a target while that is stopped. The target is then the debugger's, and
 * is continued when the debugger has gone, by the watchdog if the recorder has gone, too.
 */
#ifndef LEAKTOOLS_RECORDER_WATCHDOG_H
#define LEAKTOOLS_RECORDER_WATCHDOG_H

#include "recorder/target_table/target_table.h"

#include <stdbool.h>
#include <sys/types.h>

struct watchdog {
	pid_t pid;
	int recorder_fd; /* the recorder's end of a socket pair, open as long as it lives */
};

/*
 * True if this process and its watchdog may continue any process. A program's stop asks for no
 * rights, and a target may become another user's. Without that right, a warning says that none is
 * stopped, if @tells.
 */
bool watchdog_may_continue(bool tells);

/*
 * Starts the watchdog over @table, a shared mapping, and waits until it is ready. Call it while
 * this process has one thread and no events open: the watchdog keeps nothing open but its end of
 * the pair. Returns 0 or a negative errno.
 */
int watchdog_start(struct watchdog *ret, struct target_table *table);

/* True if the watchdog has ended by itself. Programs stop nothing then. */
bool watchdog_was_killed(const struct watchdog *watchdog);

/*
 * Ends the watchdog at once, when no target can be stopped any more. A watchdog that still waits
 * for a debugger is left to end by itself.
 */
void watchdog_stop(struct watchdog *watchdog, struct target_table *table);

#endif
