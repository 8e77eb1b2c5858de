/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a `leaks` file (docs/leaks-format.md), line by line: memory use does not depend on the
 * file's length. The file is not trusted: lines are bounded, numbers are checked for overflow, and
 * what is wrong is reported with the file's name and the line's number.
 *
 * Names come out unescaped, that is, as the traced process had them: escape them again on output.
 */
#ifndef LEAKTOOLS_PLOT_LEAKS_READER_H
#define LEAKTOOLS_PLOT_LEAKS_READER_H

#include "plot/leaks/history_parser.h"

#include <stdbool.h>
#include <stdint.h>

struct leaks_reader;

/* The summary's numbers that readers want; what a file does not say is not set. */
struct leaks_summary {
	uint64_t events;
	uint64_t lost_events;
	uint64_t
		start_ns; /* times of the recording's first and last event, as leaks_leak.time_ns */
	uint64_t end_ns;
	bool is_truncated; /* the recording was cut off */
	bool has_events;
	bool has_start;
	bool has_end;
};

/* One leaked block. */
struct leaks_leak {
	uint64_t size_bytes; /* 0 if !has_size */
	bool has_size;
	uint64_t address;
	uint64_t time_ns; /* on the recording's clock */
	uint64_t event;	  /* number in time order */
	int32_t pid;
	int32_t tid;
	uint32_t stack; /* equal numbers: equal stacks */
	const char *comm;
	const char *function; /* the allocator's */
	const char *verdict;  /* NULL: the file has none */
	bool has_age;
	uint64_t age_ns; /* from its allocation to the recording's or its process's end */
};

/* One stack frame: what comes before the module, as far as it is known. */
struct leaks_frame {
	/* The function's name; where it is not known, the address as the file has it. */
	const char *symbol;
};

/* What was found of the blocks of a stack. */
struct leaks_stack {
	uint32_t stack;
	const char *verdict;
	bool has_rate;
	double bytes_per_s, blocks_per_s; /* if has_rate: it grows */
};

enum leaks_item_kind {
	LEAKS_END,
	LEAKS_LEAK,
	LEAKS_FRAME, /* of the leak or history returned last; innermost first */
	LEAKS_STACK,
	LEAKS_HISTORY,
};

/* What leaks_reader_next() found. Strings live until the next call. */
struct leaks_item {
	enum leaks_item_kind kind;
	union {
		struct leaks_leak leak;
		struct leaks_frame frame;
		struct leaks_stack stack;
		const struct leaks_history *history;
	};
};

/*
 * Opens @path ("-" is standard input) and checks its first line. Returns 0 and a reader for
 * leaks_reader_close(), or a negative errno after reporting it.
 */
int leaks_reader_open(const char *path, struct leaks_reader **ret);

/* Closes @reader; NULL is fine. */
void leaks_reader_close(struct leaks_reader *reader);

/*
 * Reads on to the next leak, stack, history, or frame of a leak or history; unexpected operations,
 * other frames and unknown lines are passed over. Returns 0, LEAKS_END at the file's end included,
 * or a negative errno after reporting it.
 */
int leaks_reader_next(struct leaks_reader *reader, struct leaks_item *ret);

/* The summary, as far as the lines read until now tell it. */
const struct leaks_summary *leaks_reader_summary(const struct leaks_reader *reader);

/* The periods of all histories; none of them comes before. */
const struct leaks_periods *leaks_reader_periods(const struct leaks_reader *reader);

#endif
