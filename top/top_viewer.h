/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that shows a recording: it parses what the recorder writes, as leakparse would, draws
 * that a few times a second, and tells the recorder what keys ask for, by signals. It ends with the
 * recording, and then prints what leaks (summary_report.h).
 */
#ifndef LEAKTOOLS_TOP_TOP_VIEWER_H
#define LEAKTOOLS_TOP_TOP_VIEWER_H

#include "common/live_status.h"

#include <sys/types.h>

struct top_viewer_options {
	const char *title;
	int stream_fd;	 /* the recording, in perf's pipe format */
	int messages_fd; /* what the recorder says, line by line */
	const struct live_status *status;
	pid_t recorder;
};

/* Returns a status to exit with. */
int top_viewer_run(const struct top_viewer_options *options);

#endif
