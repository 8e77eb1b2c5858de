/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state file of leakrec --live: what a recording that goes on has shown so far, as a `leaks`
 * text in short with the first screen in it (docs/leaks-format.md, "While a recording goes on").
 */
#ifndef LEAKTOOLS_REPORT_LIVE_STATE_H
#define LEAKTOOLS_REPORT_LIVE_STATE_H

#include "common/broker/broker.h"
#include "parser/verdicts/leak_report.h"

#define LIVE_STATE_NAME "leaks" /* in the directory of --live */
/* More is cut off at the end of a line: the most important lines come first. */
#define LIVE_STATE_MAX_BYTES ((size_t)4 << 20)

struct live_state {
	uint64_t every_ns; /* how often it is written */
	bool is_last;	   /* the recording has ended */
	uint64_t left_out; /* events that the live parser had no time for, and are not in it */
};

/*
 * Writes the text to memory, which the caller frees. Returns 0 or -ENOMEM. @options are those of
 * @report, whose limit counts causes.
 */
int live_state_text(const struct leak_report *report, struct leaks_options *options,
		    const struct live_state *state, char **ret, size_t *ret_size);

/*
 * leakparse --from-live: prints the first screen in the state of directory @dir and how old it is,
 * in @columns (0: lines of any length), or else the text as it is. Returns 0 or a negative errno,
 * reported.
 */
int live_state_print(const char *dir, bool is_summary, bool utf8, size_t columns);

/* The broker's part of it, BROKER_OPEN_INPUT. @context: the directory. */
int live_state_serve(void *context, const struct broker_request *request, int *ret_fd);

#endif
