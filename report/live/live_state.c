/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_state.h"

#include "common/clock.h"
#include "common/scope.h"
#include "report/text/leaks_writer.h"
#include "report/text/summary_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Processes, causes and stacks; on the screen, causes. */
#define MAX_LISTED 256

/* The screen as leakparse --summary prints it to a file, each line after "screen ". */
static int write_screen(FILE *out, const struct leak_report *report)
{
	const struct summary_report_style style = {.utf8 = true, .is_live = true};
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	int err;

	if (!stream)
		return -ENOMEM;
	err = summary_report_write(stream, report, &style);
	if (fclose(stream) || err)
		return -ENOMEM;
	for (rest = text; (line = strsep(&rest, "\n")) && rest;)
		fprintf(out, "screen%s%s\n", *line ? " " : "", line);
	return 0;
}

/* The lines that only a state has. */
static int write_head(FILE *out, const struct leak_report *report, const struct live_state *state)
{
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);

	fprintf(out,
		"# live: written=%" PRIu64 ".%03" PRIu64 " every=%.9g ended=%d left_out=%" PRIu64
		"\n",
		now_ns / 1000000000, now_ns / 1000000 % 1000, (double)state->every_ns / 1e9,
		state->is_last, state->left_out);
	fprintf(out,
		"# not listed: threads, unexpected operations, blocks; and all but the first %d "
		"processes, causes and stacks\n",
		MAX_LISTED);
	return write_screen(out, report);
}

/* Cuts off what is too much, at the end of a line. */
static void limit_size(char *text, size_t *size)
{
	if (*size <= LIVE_STATE_MAX_BYTES)
		return;
	*size = LIVE_STATE_MAX_BYTES;
	while (*size > 0 && text[*size - 1] != '\n')
		(*size)--;
}

int live_state_text(const struct leak_report *report, struct leaks_options *options,
		    const struct live_state *state, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *head = NULL;
	size_t size;
	FILE *out = open_memstream(&head, &size);
	int err;

	if (!out)
		return -ENOMEM;
	/* Otherwise all growth is listed, as for a file. */
	options->limit = report->nr_causes > MAX_LISTED ? MAX_LISTED : 0;
	err = write_head(out, report, state);
	if (fclose(out) || err)
		return -ENOMEM;
	out = open_memstream(ret, ret_size);
	if (!out)
		return -ENOMEM;
	err = leaks_write_short(out, report, head, MAX_LISTED);
	if (fclose(out) || err)
		return -ENOMEM;
	limit_size(*ret, ret_size);
	return 0;
}
