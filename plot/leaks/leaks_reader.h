/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a `leaks` file (docs/leaks-format.md) line by line, so memory use does not depend on its
 * length. The file is untrusted: lines have a maximum length, numbers are checked for overflow, and
 * errors are reported with the file name and line number.
 *
 * Names are unescaped, as they were in the recorded process: escape them on output.
 */
#ifndef LEAKTOOLS_PLOT_LEAKS_READER_H
#define LEAKTOOLS_PLOT_LEAKS_READER_H

#include "common/schema/user_frame.h"
#include "plot/labels/stack_label.h"
#include "plot/leaks/history_parser.h"

#include <stdbool.h>
#include <stdint.h>

struct leaks_reader;

/* Numbers of the summary. Those that the file lacks are 0. */
struct leaks_summary {
	uint64_t events;
	uint64_t lost_events;
	uint64_t start_ns; /* of the first event, on the clock of leaks_leak.time_ns */
	uint64_t end_ns;   /* of the last event */
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
	uint64_t event;	  /* sequence number in time order */
	int32_t pid;
	int32_t tid;
	uint32_t stack; /* equal stacks have equal numbers */
	const char *comm;
	const char *function; /* of the allocator */
	const char *verdict;  /* NULL: the file has none */
	bool has_age;
	uint64_t age_ns; /* from its allocation to the end of the recording or process */
};

/* A process that holds blocks. */
struct leaks_process {
	int32_t pid;
	const char *name;
};

/* The verdict on a stack. */
struct leaks_stack {
	uint32_t stack;
	const char *verdict;
	const char *function; /* of the allocator; NULL: the line has none */
	bool has_rate;
	double bytes_per_s, blocks_per_s; /* if has_rate: the stack grows */
};

enum leaks_item_kind {
	LEAKS_END,
	LEAKS_LEAK,
	LEAKS_FRAME, /* of the last leak or history, innermost first */
	LEAKS_PROCESS,
	LEAKS_STACK,
	LEAKS_HISTORY,
};

/* The result of leaks_reader_next(). Strings are valid until the next call. */
struct leaks_item {
	enum leaks_item_kind kind;
	struct stack_label_place place; /* of a frame */
	union {
		struct leaks_leak leak;
		struct frame_facts frame;
		struct leaks_process process;
		struct leaks_stack stack;
		const struct leaks_history *history;
	};
};

/*
 * Opens @path ("-" is standard input) and checks its first line. Returns 0 and a reader for
 * leaks_reader_close(), or a negative errno after reporting it.
 */
int leaks_reader_open(const char *path, struct leaks_reader **ret);

/* Closes @reader, which may be NULL. */
void leaks_reader_close(struct leaks_reader *reader);

/*
 * Reads the next leak, stack, history, or frame of a leak or history, and skips all other lines.
 * Returns 0, also with LEAKS_END at the end of the file, or a negative errno after reporting it.
 */
int leaks_reader_next(struct leaks_reader *reader, struct leaks_item *ret);

/* The summary, as far as it has been read. */
const struct leaks_summary *leaks_reader_summary(const struct leaks_reader *reader);

/* The periods of all histories; valid once a history has been read. */
const struct leaks_periods *leaks_reader_periods(const struct leaks_reader *reader);

#endif
