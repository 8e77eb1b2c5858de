/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the `periods` and `history` lines of a `leaks` file: held amounts over time, lifetimes. */
#ifndef LEAKTOOLS_PLOT_HISTORY_PARSER_H
#define LEAKTOOLS_PLOT_HISTORY_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than leakparse writes; a file with more is rejected. */
#define LEAKS_PERIODS_MAX   4096
#define LEAKS_LIFETIMES_MAX 512

/* Equal parts of the recording. */
struct leaks_periods {
	size_t nr; /* 0: the file has none */
	uint64_t begin_ns, length_ns;
	uint64_t peak_ns; /* when all stacks together held the most bytes; 0: not known */
};

/* The number of blocks that lived for @ns or longer, but less than the next entry. */
struct leaks_lifetime {
	uint64_t ns;
	uint64_t nr_blocks;
};

struct leaks_history {
	bool is_all;	/* the sum of all stacks */
	bool is_cause;	/* of the cause with number @stack */
	uint32_t stack; /* the stack, unless is_all */
	/* The amounts at the end of each period. The last period ends with the recording. */
	uint64_t held_bytes[LEAKS_PERIODS_MAX];
	uint64_t held_blocks[LEAKS_PERIODS_MAX];
	size_t nr;				/* number of periods, as in leaks_periods */
	uint64_t at_peak_bytes, at_peak_blocks; /* at leaks_periods.peak_ns */
	struct leaks_lifetime lifetimes[LEAKS_LIFETIMES_MAX]; /* of freed blocks, shortest first */
	size_t nr_lifetimes;
};

/* Parse a line from @cursor, after its first word. Return NULL, or what is wrong with the line. */
const char *history_parse_periods(char *cursor, struct leaks_periods *ret);
const char *history_parse(char *cursor, const struct leaks_periods *periods, bool is_cause,
			  struct leaks_history *ret);

#endif
