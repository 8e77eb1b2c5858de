/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H

#include "recorder/session/session.h"

/*
 * Parses @argv into *@options, which has the defaults; it then points into argv and to *@ret_pids,
 * which the caller frees, also after an error. Returns what options_parse() does.
 */
int leakrec_options_parse(int argc, char **argv, struct session_options *options, pid_t **ret_pids);

#endif
