/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lives of the processes that hold blocks, as far as they are in the recording, and a clock on
 * which what happened in several lives can be compared (docs/verdicts.md).
 */
#ifndef LEAKTOOLS_PARSER_PROCESS_VIEWS_H
#define LEAKTOOLS_PARSER_PROCESS_VIEWS_H

#include "parser/calls/heap_tracker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The time in which a process could be seen. */
struct process_view {
	pid_t pid;
	uint64_t start_ns, end_ns;
	bool exited;
};

struct process_views {
	struct process_view *list;
	size_t nr;
	uint32_t *of; /* [i]: the index of the i-th block's view */
	uint64_t start_ns;
	/* For each of the list: the last call of process_views_clock() that met it; and a clock. */
	uint32_t *met, nr_calls;
	double *lives_s, *sums_s;
};

struct process_views_input {
	const struct heap_block *held;
	size_t nr_held;
	uint64_t start_ns, end_ns; /* of the recording */
	/* As in verdict_types.h. */
	struct process_life (*process_life)(const void *context, pid_t pid, uint64_t time_ns);
	const void *context;
};

/* Returns 0 or -ENOMEM. */
int process_views_init(struct process_views *views, const struct process_views_input *input);
void process_views_deinit(struct process_views *views);

/*
 * A clock for several processes: it shows the time that all of them together have spent at a lower
 * age, divided by their number. What each of them does at a steady rate is steady on it, whenever
 * they began and however long they lived.
 */
struct process_clock {
	const double *lives_s; /* ascending */
	const double *sums_s;  /* [i]: of the first i lives */
	size_t nr;
	size_t nr_present;   /* of them, not predecessors */
	bool began_together; /* all did */
};

/*
 * How long the process could allocate blocks that are @min_age_ns old now, until @until_s after the
 * recording's start. At most 0: not at all.
 */
double process_views_life_s(const struct process_views *views, size_t index, double min_age_ns,
			    double until_s);
/*
 * Makes the clock, by these lives, of the processes of the @nr blocks @order[0] ..., and of
 * predecessors, whose @nr_left blocks follow. It is valid until the next call.
 */
void process_views_clock(struct process_views *views, const uint32_t *order, size_t nr,
			 size_t nr_left, double min_age_ns, double until_s,
			 struct process_clock *ret);
double process_clock_at(const struct process_clock *clock, double age_s);

#endif
