/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live parser of leakrec --live, --metrics and --on-leak: parses the recording as leakparse
 * does while it is made, and judges it from time to time. It takes at most a twentieth of its time
 * for that. What it writes replaces what it wrote before. If it cannot write, it says so once, and
 * tries again the next time.
 */
#ifndef LEAKTOOLS_REPORT_LIVE_PARSER_H
#define LEAKTOOLS_REPORT_LIVE_PARSER_H

#include "common/live_status.h"
#include "report/live/live_services.h"

#include <stdint.h>

struct live_parser_options {
	int stream_fd; /* the recording, in perf's pipe format */
	int done_fd;   /* gets a byte when the last state is written */
	const struct live_status *status;
	uint64_t every_ns;
	const char *paths[LIVE_NR_FILES]; /* for messages; NULL: that file is not written */
	const char *recording;		  /* the metrics' label */
	const char *on_leak;		  /* a program and its arguments; NULL: none */
};

/* Runs until the recording ends. Returns the process's exit status. */
int live_parser_run(const struct live_parser_options *options);

#endif
