/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's side of leakrec --top: starts the viewer (top_viewer.h) as a process of its own
 * and writes the recording to it through a pipe. So the code that parses and draws runs without the
 * recorder's privileges, and it delays the drain of the rings only if the pipe and the writer's
 * buffers are full.
 */
#ifndef LEAKTOOLS_TOP_TOP_VIEW_H
#define LEAKTOOLS_TOP_TOP_VIEW_H

#include "common/live_status.h"

#include <sys/types.h>
#include <termios.h>

struct top_view {
	pid_t pid;
	int stream_fd; /* write end for the recording; its writer closes it */
	struct live_status *status;
	int stderr_fd;		 /* the original standard error */
	struct termios terminal; /* the original settings */
};

/*
 * Starts the viewer; @title names what is recorded. Standard error is redirected to the viewer,
 * which prints it when it has left the screen. Call it before creating threads. Returns 0 or a
 * negative errno, reported.
 */
int top_view_start(const char *title, struct top_view *ret);

/*
 * Waits for the viewer to exit; close the recording's stream first. Restores the terminal, even if
 * the viewer has crashed. Returns the exit status for the recorder.
 */
int top_view_finish(struct top_view *view);

#endif
