/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes a snapshot of a running process. If it sleeps meanwhile, it is not stopped
 * (sleeping_threads.h). Otherwise it stands still, by ptrace; what the kernel does to its system
 * calls then is in docs/man/leakscan.1.scd. The process goes on whatever happens to this one: the
 * kernel releases it when this process ends, and a guard ends this process if it is itself stopped.
 */
#ifndef LEAKTOOLS_SCAN_LIVE_SNAPSHOT_H
#define LEAKTOOLS_SCAN_LIVE_SNAPSHOT_H

#include "scan/snapshot/snapshot.h"

/*
 * Takes a snapshot of @pid (the process's own id), which stands still for @limit_ns at most. With
 * @stop it is stopped even if it sleeps. Returns 0 or a negative errno, reported. Release with
 * snapshot_deinit() in either case. Call it while this process has one thread, and exit if it
 * fails.
 */
int live_snapshot_take(struct snapshot *ret, pid_t pid, uint64_t limit_ns, bool stop);

/*
 * Checks that @pid can be scanned: it runs, no debugger holds it, it is no kernel thread, not this
 * process. A thread's id becomes its process's. Returns 0 or a negative errno, reported.
 */
int live_snapshot_check(pid_t *pid);

#endif
