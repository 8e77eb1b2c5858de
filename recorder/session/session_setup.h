/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first phase of a session: what to record, by which means, and where to. */
#ifndef LEAKTOOLS_RECORDER_SESSION_SETUP_H
#define LEAKTOOLS_RECORDER_SESSION_SETUP_H

#include "recorder/session/session_state.h"

/*
 * Finds or starts the processes, plans and registers the probes, opens the output, and prepares
 * backpressure. Returns 0 or a negative errno, reported except for -EINTR.
 */
int session_set_up(struct session *session);

#endif
