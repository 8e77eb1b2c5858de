/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/progress.h"

#include "common/clock.h"
#include "common/colour.h"
#include "common/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define SHOW_AFTER_NS 1000000000ULL
#define SHOW_EVERY_NS 250000000ULL

#define CLEAR_LINE    "\r\033[K"

void progress_init(struct progress *ret)
{
	*ret = (struct progress){
		.is_wanted = terminal_can_redraw(STDERR_FILENO),
		.start_ns = clock_now_ns(),
	};
}

static void left_text(char *ret, size_t size, double seconds)
{
	uint64_t whole = (uint64_t)(seconds + 0.5);

	if (whole >= 3600)
		snprintf(ret, size, "%" PRIu64 " h %02" PRIu64 " min", whole / 3600,
			 whole / 60 % 60);
	else if (whole >= 60)
		snprintf(ret, size, "%" PRIu64 " min %02" PRIu64 " s", whole / 60, whole % 60);
	else
		snprintf(ret, size, "%" PRIu64 " s", whole);
}

void progress_text(char *ret, size_t size, uint64_t done, uint64_t total, uint64_t elapsed_ns)
{
	double seconds = (double)elapsed_ns / 1e9, rate = seconds > 0 ? (double)done / seconds : 0;
	char left[48] = "?";

	if (rate > 0)
		left_text(left, sizeof(left), (double)(total - done) / rate);
	snprintf(ret, size, "%.0f %%, %s of %s, %s/s, %s left",
		 total ? 100 * (double)done / (double)total : 100,
		 quantity_bytes((double)done).text, quantity_bytes((double)total).text,
		 quantity_bytes(rate).text, left);
}

void progress_update(struct progress *progress, uint64_t done, uint64_t total)
{
	uint64_t now_ns;
	char text[160];

	if (!progress->is_wanted || total == 0)
		return;
	now_ns = clock_now_ns();
	if (now_ns - progress->start_ns < SHOW_AFTER_NS ||
	    now_ns - progress->shown_ns < SHOW_EVERY_NS)
		return;
	progress->shown_ns = now_ns;
	progress->is_shown = true;
	progress_text(text, sizeof(text), done < total ? done : total, total,
		      now_ns - progress->start_ns);
	/* The cursor returns to the start of the line, so that a message overwrites it. */
	fprintf(stderr, CLEAR_LINE "%s\r", text);
}

void progress_end(struct progress *progress)
{
	if (progress->is_shown)
		fputs(CLEAR_LINE, stderr);
	progress->is_shown = false;
	progress->is_wanted = false;
}
