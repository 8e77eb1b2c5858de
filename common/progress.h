/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line on the terminal that shows the progress of long work: how much is done, how fast, how much
 * time is left. It appears on terminals only, after one second.
 */
#ifndef LEAKTOOLS_COMMON_PROGRESS_H
#define LEAKTOOLS_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool is_wanted;
	bool is_shown; /* the line is on the terminal */
	uint64_t start_ns, shown_ns;
};

/* Starts the clock. Nothing is shown if standard error is not a terminal. */
void progress_init(struct progress *ret);

/* @done bytes of @total are done. Call it often: it updates the line four times a second. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);

/*
 * Reading is over, and @what begins ("judging the blocks"). Nothing is shown if a report goes to
 * the same terminal. @progress may be NULL, also below.
 */
void progress_phase(struct progress *progress, const char *what);
/* @done of @total are done, as "writing, 12,000 of 50,000 blocks". Call it often. */
void progress_count(struct progress *progress, uint64_t done, uint64_t total, const char *what);

/* Clears the line. Call it before anything else is written to the terminal. */
void progress_end(struct progress *progress);

/* The time that is left: "3 s", "17 min 04 s", "2 h 16 min". */
void progress_left_text(char *ret, size_t size, double seconds);

/* Formats the line: "37 %, 412 MiB of 1.09 GiB, 210 MiB/s, 3 s left". @done <= @total. */
void progress_text(char *ret, size_t size, uint64_t done, uint64_t total, uint64_t elapsed_ns);

#endif
