/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One recording, from the options to the last line: probes, events, rings, output. The session owns
 * what it sets up and releases it in every case, also after a failure.
 */
#ifndef LEAKTOOLS_RECORDER_SESSION_H
#define LEAKTOOLS_RECORDER_SESSION_H

#include "recorder/session/session_options.h"

/*
 * Records. *@ret_command_status is how the command ended (launched.status); 0 without a command.
 * Returns 0 or a negative errno, reported.
 */
int session_run(const struct session_options *options, int *ret_command_status);

#endif
