/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The viewer process of leakrec --top. It parses the recording as leakparse does, draws the state a
 * few times a second, and has signals sent to the recorder on key presses. It exits after the
 * recording ends and it has printed the summary (summary_report.h). Its broker
 * (common/broker/broker.h) opens the files for names and sends the signals: it gives up its rights
 * before it reads the recording.
 */
#ifndef LEAKTOOLS_TOP_TOP_VIEWER_H
#define LEAKTOOLS_TOP_TOP_VIEWER_H

#include "common/live_status.h"

struct top_viewer_options {
	const char *title;
	int stream_fd;	 /* the recording, in perf's pipe format */
	int messages_fd; /* the recorder's standard error */
	const struct live_status *status;
};

/* Runs the viewer. Returns its exit status. */
int top_viewer_run(const struct top_viewer_options *options);

#endif
