/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line on the terminal that shows that leakrec records, how much, and how long it will take. It
 * never waits for the terminal, which may belong to a process that is held back.
 */
#ifndef LEAKTOOLS_RECORDER_RECORD_LINE_H
#define LEAKTOOLS_RECORDER_RECORD_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_line {
	bool is_wanted, is_shown;
	uint64_t start_ns, shown_ns;
	uint64_t nr_shown; /* events at @shown_ns */
};

/* Nothing is shown if standard error is no terminal. */
void record_line_init(struct record_line *ret, uint64_t start_ns);

/* @end_ns: when the recording ends by itself; UINT64_MAX: it does not. Call it often. */
void record_line_update(struct record_line *line, uint64_t now_ns, uint64_t end_ns,
			uint64_t nr_events);
/* Clears the line. Call it before other messages. */
void record_line_end(struct record_line *line);

#endif
