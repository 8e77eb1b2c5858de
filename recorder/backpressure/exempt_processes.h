/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that a recording must not stop or record, because it would disturb itself.
 *
 * Recordings of all processes leave out recorders and their watchdogs. Where the recording goes
 * into a pipe, they also leave out the pipe's readers, and the readers of what these write: such a
 * process allocates for each event, which would cause further events. Naming a reader is an error.
 *
 * The recorder's ancestors are recorded, but never stopped: the shell, the terminal, the login.
 * Backpressure spares other processes by what they are (exempt.h).
 */
#ifndef LEAKTOOLS_RECORDER_EXEMPT_PROCESSES_H
#define LEAKTOOLS_RECORDER_EXEMPT_PROCESSES_H

#include "recorder/backpressure/backpressure.h"

/*
 * Sets their roles in @backpressure, which may be NULL. @output: where the recording goes, "-" for
 * standard output, or NULL. @pids: the named processes, which backpressure knows already. Returns 0
 * or a negative errno, reported.
 */
int exempt_processes_exempt(struct backpressure *backpressure, const char *output,
			    const pid_t *pids, size_t nr_pids);

/* True if @pid lives and is not among @pids, not this process and not its ancestor. */
bool exempt_processes_is_foreign(pid_t pid, const pid_t *pids, size_t nr_pids);

#endif
