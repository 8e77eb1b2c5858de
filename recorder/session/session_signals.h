/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The signals that end a recording: SIGINT, SIGTERM and SIGHUP. */
#ifndef LEAKTOOLS_RECORDER_SESSION_SIGNALS_H
#define LEAKTOOLS_RECORDER_SESSION_SIGNALS_H

#include "recorder/session/session_state.h"

/*
 * Lets signals end the process at once, while it has nothing to clean up. It inspects files of
 * other users meanwhile, which may be large and take long. SIGINT ends it even in the background of
 * a shell script, which starts such jobs with SIGINT ignored.
 */
void session_let_signals_end(const struct session_options *options);

/*
 * From now on signals are read from a descriptor, so that none interrupts a step that must be
 * completed. Returns the descriptor, or a negative number, reported.
 */
int session_open_signals(void);

/* Reads the signals that have come. */
void session_consume_signals(int signal_fd);

/* True if a signal has come. */
bool session_has_signal(const struct session *session);

/* The same between the steps of set-up: returns -EINTR or 0. Long steps check for themselves. */
int session_check_signals(const struct session *session);

/* Notes the time of the first signal, if one has come. */
void session_note_signal(struct session *session);

#endif
