/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/record_line.h"

#include "common/colour.h"
#include "common/progress.h"
#include "common/quantity.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHOW_EVERY_NS UINT64_C(500000000)
#define CLEAR_LINE    "\r\033[K"

void record_line_init(struct record_line *ret, uint64_t start_ns)
{
	*ret = (struct record_line){
		.is_wanted = terminal_can_redraw(STDERR_FILENO),
		.start_ns = start_ns,
		.shown_ns = start_ns,
	};
}

/* "12 s, 48,210 events/s, 48 s left"; @left_s < 0: without that. */
static void print_line(char *ret, size_t size, double elapsed_s, double events_per_s, double left_s)
{
	char elapsed[48], left[64] = "";

	progress_left_text(elapsed, sizeof(elapsed), elapsed_s);
	if (left_s >= 0) {
		char text[48];

		progress_left_text(text, sizeof(text), left_s);
		snprintf(left, sizeof(left), ", %s left", text);
	}
	snprintf(ret, size, "%s, %s events/s%s", elapsed,
		 quantity_count((uint64_t)(events_per_s + 0.5)).text, left);
}

/*
 * Writes if the terminal has room: it may be stopped by Ctrl-S. In the background we would be
 * stopped ourselves.
 */
static bool show(const char *text)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	return tcgetpgrp(STDERR_FILENO) == getpgrp() && poll(&fd, 1, 0) == 1 &&
	       (fd.revents & POLLOUT) && write(STDERR_FILENO, text, strlen(text)) > 0;
}

void record_line_update(struct record_line *line, uint64_t now_ns, uint64_t end_ns,
			uint64_t nr_events)
{
	char text[160], shown[180];

	if (!line->is_wanted || now_ns - line->shown_ns < SHOW_EVERY_NS)
		return;
	print_line(text, sizeof(text), (double)(now_ns - line->start_ns) / 1e9,
		   (double)(nr_events - line->nr_shown) * 1e9 / (double)(now_ns - line->shown_ns),
		   end_ns == UINT64_MAX ? -1
		   : end_ns > now_ns	? (double)(end_ns - now_ns) / 1e9
					: 0);
	/* The cursor returns to the start of the line, so that a message overwrites it. */
	snprintf(shown, sizeof(shown), CLEAR_LINE "%s\r", text);
	line->is_shown |= show(shown);
	line->shown_ns = now_ns;
	line->nr_shown = nr_events;
}

void record_line_end(struct record_line *line)
{
	if (line->is_shown)
		show(CLEAR_LINE);
	line->is_wanted = line->is_shown = false;
}
