/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs work that SIGKILL must not interrupt in a process of its own, which shares memory and
 * descriptors with this one.
 *
 * While a task has a SIGKILL, the kernel writes no breakpoint, and takes none out either
 * (uprobe_write_opcode() fails with EINTR, kernel/events/uprobes.c, Linux 6.18): a kill while
 * probes are placed would leave breakpoints in the target until they are placed again. A kill of
 * this process does not reach the other one. That finishes its work and then closes, as the last
 * owner, all descriptors. A process that ends gets no signal any more, so this removes every
 * breakpoint.
 */
#ifndef LEAKTOOLS_RECORDER_APART_H
#define LEAKTOOLS_RECORDER_APART_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Calls @work with @argument and returns what that returns, or a negative errno. This thread waits
 * meanwhile. No signal is delivered to @work, but is_interrupted() does not see those of this
 * process.
 */
int apart_run(int (*work)(void *argument), void *argument);

/*
 * The same for @work that opens many descriptors, one after the other. Once a signal asks this
 * process to end, no more can be opened: then @work fails, and this returns -EINTR.
 *
 * Each perf event of a probe waits for a lock of the kernel (event_mutex, perf_trace_init() in
 * kernel/trace/trace_event_perf.c, Linux 6.18). Who closes such events holds it for a tenth of a
 * second each: leakrec took up to eleven seconds to end while other recordings did.
 */
int apart_open(int (*work)(void *argument), void *argument);

/* Descriptors that such processes close while this one goes on. */
struct apart_closing;

/*
 * Closes the @nr descriptors @fds, an array of malloc() that it takes over, in such processes. The
 * kernel may need long for that, and a SIGKILL there would leave breakpoints, too. Returns NULL if
 * there is no memory for that; then they are closed already. Release with apart_close_is_done().
 */
struct apart_closing *apart_close_begin(int *fds, size_t nr);

/*
 * True if all is closed; frees @closing then. If this process ends before that, it leaves @closing
 * to the other one. The second one waits for that.
 */
bool apart_close_is_done(struct apart_closing *closing);
void apart_close_wait(struct apart_closing *closing);

#endif
