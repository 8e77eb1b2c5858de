/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far something is, on one line of the terminal: what is done, how fast, how long it will take.
 * Only on a terminal, and only of what takes longer than a second.
 */
#ifndef LEAKTOOLS_COMMON_PROGRESS_H
#define LEAKTOOLS_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool is_wanted;
	bool is_shown; /* there is a line to be cleared */
	uint64_t start_ns, shown_ns;
};

/* Begins now. Nothing is ever shown if standard error is no terminal. */
void progress_init(struct progress *ret);

/* So many bytes of @total are done. To be called often: shows something four times a second. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);

/* Clears the line. To be called before anything else is written to the terminal. */
void progress_end(struct progress *progress);

/* The line: "37 %, 412 MiB of 1.09 GiB, 210 MiB/s, 3 s left". @done is not more than @total. */
void progress_text(char *ret, size_t size, uint64_t done, uint64_t total, uint64_t elapsed_ns);

#endif
