/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakrec --top, as the recorder sees it: a process of its own that shows the recording
 * (top_viewer.h), so that what parses and draws runs without the recorder's rights and never holds
 * up what drains the rings, as long as the pipe in between and the writer's buffers take it.
 */
#ifndef LEAKTOOLS_TOP_TOP_VIEW_H
#define LEAKTOOLS_TOP_TOP_VIEW_H

#include "common/live_status.h"

#include <sys/types.h>
#include <termios.h>

struct top_view {
	pid_t pid;
	int stream_fd; /* for the recording, to be closed by whoever writes that */
	struct live_status *status;
	int stderr_fd; /* as it was */
	struct termios terminal;
};

/*
 * Starts it; @title says what is recorded. From here on standard error goes through it, which
 * prints that when the terminal is free again. To be called before threads are made. Returns 0 or a
 * negative errno, reported.
 */
int top_view_start(const char *title, struct top_view *ret);

/*
 * Waits for its end, once the recording has ended and its stream is closed. The terminal is as it
 * was, whatever has happened to the process. Returns the status to exit with.
 */
int top_view_finish(struct top_view *view);

#endif
