/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second phase of a session: from the first event that is opened until recording begins. */
#ifndef LEAKTOOLS_RECORDER_SESSION_START_H
#define LEAKTOOLS_RECORDER_SESSION_START_H

#include "recorder/session/session_state.h"

/*
 * Opens and enables the events, continues the command, and drops privileges. Returns 0 or a
 * negative errno, reported except for -EINTR.
 */
int session_start(struct session *session);

#endif
