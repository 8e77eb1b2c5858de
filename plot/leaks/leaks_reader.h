/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a `leaks` file (docs/leaks-format.md), of version 1 or 2, line by line, so memory use does
 * not depend on its length. The file is untrusted: lines have a maximum length, numbers are checked
 * for overflow, and errors are reported with the file name and line number.
 *
 * Names are unescaped, as they were in the recorded process: escape them on output.
 */
#ifndef LEAKTOOLS_PLOT_LEAKS_READER_H
#define LEAKTOOLS_PLOT_LEAKS_READER_H

#include "common/schema/reach_class.h"
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
	double observed;   /* in windows: the part of the time that was observed; 0: all of it */
	bool has_unseen;   /* a scan did not see all places where pointers may be */
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
	uint32_t stack;	      /* equal stacks have equal numbers */
	const char *comm;     /* "?" in version 2 */
	const char *function; /* of the allocator; NULL in version 2 */
	const char *verdict;  /* NULL: the file has none */
	bool has_age;	      /* in version 2 most ages follow from the end of the process */
	uint64_t age_ns;      /* from its allocation to the end of the recording or process */
	enum reach_group reach;
};

/* The number of a stack, whose frames follow; only in version 2, before all other uses. */
struct leaks_definition {
	uint32_t stack;
	const char *function; /* of the allocator */
};

/* A function of the program that is a wrapper; before all stacks. */
struct leaks_wrapper {
	const char *function;
	const char *module; /* as that of a frame */
};

/* A process that holds blocks. */
struct leaks_process {
	int32_t pid;
	const char *name;
	uint64_t end_ns; /* on the recording's clock; 0: not before the recording's */
};

/* The verdict on a stack. */
struct leaks_stack {
	uint32_t stack;
	const char *verdict;
	const char *function; /* of the allocator; NULL: the line has none */
	uint32_t cause;	      /* a leaks_cause.number; 0: the stack is a cause of its own */
	bool has_rate;
	double bytes_per_s, blocks_per_s; /* if has_rate: the stack grows */
};

/* A cause of several stacks. The frames that they have in common follow. */
struct leaks_cause {
	uint32_t number;
	const char *verdict;
	uint64_t nr_stacks;
	bool has_rate;
	double bytes_per_s, blocks_per_s; /* if has_rate: the cause grows */
};

enum leaks_item_kind {
	LEAKS_END,
	LEAKS_LEAK,
	LEAKS_DEFINITION,
	LEAKS_WRAPPER,
	/* Innermost first: of the last leak or history; in version 2, of the definition or cause */
	LEAKS_FRAME,
	LEAKS_PROCESS,
	LEAKS_STACK,
	LEAKS_CAUSE,
	LEAKS_HISTORY,
};

/* The result of leaks_reader_next(). Strings are valid until the next call. */
struct leaks_item {
	enum leaks_item_kind kind;
	struct stack_label_place place; /* of a frame */
	union {
		struct leaks_leak leak;
		struct leaks_definition definition;
		struct leaks_wrapper wrapper;
		struct frame_facts frame;
		struct leaks_process process;
		struct leaks_stack stack;
		struct leaks_cause cause;
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
 * Reads the next item of one of these kinds, and skips all other lines.
 * Returns 0, also with LEAKS_END at the end of the file, or a negative errno after reporting it.
 */
int leaks_reader_next(struct leaks_reader *reader, struct leaks_item *ret);

/*
 * Reports that the line of the last item is wrong, and @why. Returns -EINVAL. The reader itself
 * keeps no stacks, so the caller finds errors in their numbers.
 */
int leaks_reader_reject(const struct leaks_reader *reader, const char *why);

/* The version of the file: 1 or 2. */
int leaks_reader_version(const struct leaks_reader *reader);

/* The summary, as far as it has been read. */
const struct leaks_summary *leaks_reader_summary(const struct leaks_reader *reader);

/* The periods of all histories; valid once a history has been read. */
const struct leaks_periods *leaks_reader_periods(const struct leaks_reader *reader);

#endif
