/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that stops others must not itself be stopped: they would wait as long. The guard is a
 * child process that kills this process if it has not ended the guard in time. The kernel then lets
 * go of what it traces.
 */
#ifndef LEAKTOOLS_SCAN_PAUSE_GUARD_H
#define LEAKTOOLS_SCAN_PAUSE_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct pause_guard {
	pid_t pid;
	int fd;
};

/* Returns 0 or a negative errno, reported. */
int pause_guard_start(struct pause_guard *ret, uint64_t limit_ns);
void pause_guard_end(struct pause_guard *guard);

#endif
