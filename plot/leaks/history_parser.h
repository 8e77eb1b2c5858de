/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The `periods` and `history` lines of a `leaks` file: what was held over time, and lifetimes. */
#ifndef LEAKTOOLS_PLOT_HISTORY_PARSER_H
#define LEAKTOOLS_PLOT_HISTORY_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than leakparse writes; a file that has more is none. */
#define LEAKS_PERIODS_MAX   4096
#define LEAKS_LIFETIMES_MAX 512

/* Equal parts of the recording. */
struct leaks_periods {
	size_t nr; /* 0: the file has none */
	uint64_t begin_ns, length_ns;
};

/* So many blocks lived so long, or longer but less than the next such time. */
struct leaks_lifetime {
	uint64_t ns;
	uint64_t nr_blocks;
};

struct leaks_history {
	bool is_all;	/* of all stacks together */
	uint32_t stack; /* else of this one */
	/* At the end of each period; at the last one's, what the recording ends with. */
	uint64_t held_bytes[LEAKS_PERIODS_MAX];
	uint64_t held_blocks[LEAKS_PERIODS_MAX];
	size_t nr;					      /* of periods, as in leaks_periods */
	struct leaks_lifetime lifetimes[LEAKS_LIFETIMES_MAX]; /* of freed blocks; shortest first */
	size_t nr_lifetimes;
};

/* What stands behind the line's first word. Return NULL, or what is wrong with it. */
const char *history_parse_periods(char *cursor, struct leaks_periods *ret);
const char *history_parse(char *cursor, const struct leaks_periods *periods,
			  struct leaks_history *ret);

#endif
