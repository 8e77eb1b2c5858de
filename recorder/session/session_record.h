/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The third phase of a session: recording, completing the output, and the last line. */
#ifndef LEAKTOOLS_RECORDER_SESSION_RECORD_H
#define LEAKTOOLS_RECORDER_SESSION_RECORD_H

#include "recorder/session/session_state.h"

/*
 * Records until the duration is over, a signal comes, the targets are gone or writing fails.
 * Returns 0 or a negative errno, reported.
 */
int session_record(struct session *session);

#endif
