/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a recording is of: its processes, and the probes for their allocators and resources. */
#ifndef LEAKTOOLS_RECORDER_SESSION_TARGETS_H
#define LEAKTOOLS_RECORDER_SESSION_TARGETS_H

#include "recorder/session/session_state.h"

/*
 * Starts the command or checks the processes, and plans the probes. Returns 0 or a negative errno,
 * reported.
 */
int session_targets_find(struct session *session);

/* With --no-heap, there may be nothing to record. Returns 0, or -EINVAL after reporting that. */
int session_targets_check(struct session *session);

/* Warns of processes that are stopped, and of children that are not recorded. Returns 0. */
int session_targets_warn(struct session *session);

#endif
