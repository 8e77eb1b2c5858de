/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom a recording must not disturb, lest it disturb itself.
 *
 * Where all processes are recorded, left out are recorders with their guards, and where the
 * recording goes into a pipe, whoever reads it, and the readers of what these write: what they
 * allocate for an event would be events again. To name such a reader is refused.
 *
 * Recorded, but never stopped, are the recorder's ancestors: the shell, what it runs in, how one is
 * logged in. Backpressure itself spares others (exempt.h).
 */
#ifndef LEAKTOOLS_RECORDER_EXEMPT_PROCESSES_H
#define LEAKTOOLS_RECORDER_EXEMPT_PROCESSES_H

#include "recorder/backpressure/backpressure.h"

/*
 * Tells @gate, which may be NULL, of them. @output: where the recording goes, "-" for standard
 * output, or NULL. @pids: those that were named, which backpressure knows already. Returns 0 or a
 * negative errno, reported.
 */
int exempt_processes_exempt(struct backpressure *backpressure, const char *output,
			    const pid_t *pids, size_t nr_pids);

/* True if @pid lives and is none of @pids, nor this process or one of its ancestors. */
bool exempt_processes_is_foreign(pid_t pid, const pid_t *pids, size_t nr_pids);

#endif
