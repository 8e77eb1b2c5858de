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

void progress_left_text(char *ret, size_t size, double seconds)
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
		progress_left_text(left, sizeof(left), (double)(total - done) / rate);
	snprintf(ret, size, "%.0f %%, %s of %s, %s/s, %s left",
		 total ? 100 * (double)done / (double)total : 100,
		 quantity_bytes((double)done).text, quantity_bytes((double)total).text,
		 quantity_bytes(rate).text, left);
}

/* Whether it is time to show the line; then sets *@ret_elapsed_ns. */
static bool is_due(struct progress *progress, uint64_t *ret_elapsed_ns)
{
	uint64_t now_ns;

	if (!progress || !progress->is_wanted)
		return false;
	now_ns = clock_now_ns();
	if (now_ns - progress->start_ns < SHOW_AFTER_NS ||
	    now_ns - progress->shown_ns < SHOW_EVERY_NS)
		return false;
	progress->shown_ns = now_ns;
	progress->is_shown = true;
	*ret_elapsed_ns = now_ns - progress->start_ns;
	return true;
}

/* The cursor returns to the start of the line, so that a message overwrites it. */
static void show(const char *text)
{
	fprintf(stderr, CLEAR_LINE "%s\r", text);
}

void progress_update(struct progress *progress, uint64_t done, uint64_t total)
{
	uint64_t elapsed_ns;
	char text[160];

	if (total == 0 || !is_due(progress, &elapsed_ns))
		return;
	progress_text(text, sizeof(text), done < total ? done : total, total, elapsed_ns);
	show(text);
}

void progress_phase(struct progress *progress, const char *what)
{
	uint64_t elapsed_ns;

	if (!progress)
		return;
	progress->is_wanted = terminal_can_redraw(STDERR_FILENO) && !isatty(STDOUT_FILENO);
	progress->shown_ns = 0;
	if (is_due(progress, &elapsed_ns))
		show(what);
	/* The first count replaces it at once. */
	progress->shown_ns = 0;
}

void progress_count(struct progress *progress, uint64_t done, uint64_t total, const char *what)
{
	uint64_t elapsed_ns;
	char text[160];

	if (!is_due(progress, &elapsed_ns))
		return;
	snprintf(text, sizeof(text), "writing, %s of %s %s", quantity_count(done).text,
		 quantity_count(total).text, what);
	show(text);
}

void progress_end(struct progress *progress)
{
	if (!progress)
		return;
	if (progress->is_shown)
		fputs(CLEAR_LINE, stderr);
	progress->is_shown = false;
	progress->is_wanted = false;
}
