/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H

#include "recorder/session/session.h"
#include "report/live/live_process.h"

/*
 * Parses @argv into *@options, which has the defaults, and *@ret_live. They then point into argv
 * and to *@ret_pids, which the caller frees, also after an error. Returns what options_parse()
 * does.
 */
int leakrec_options_parse(int argc, char **argv, struct session_options *options,
			  struct live_options *ret_live, pid_t **ret_pids);

#endif
