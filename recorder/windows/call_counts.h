/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the calls of functions through which leaks allocate, all the time. Windows show so few
 * blocks of a leak that its rate is known to a third or so. A leak's own call path often has a
 * function that is called rarely: how often is then known exactly, and windows have only to show
 * how many blocks a call leaves behind. Each count becomes samples of leakrec:calls
 * (common/schema/call_counts.h).
 *
 * Between windows, the stack is chosen of which most blocks outlive their windows. For one window,
 * the entries of all functions of that stack have probes. Of those that were called rarely, the
 * innermost is counted from then on. The probes are on the beginnings of pieces of code, which a
 * process without privileges finds in the file (probes/calls/call_plan.h). A function that
 * becomes hot is not counted any more: a hit costs microseconds.
 */
#ifndef LEAKTOOLS_RECORDER_CALL_COUNTS_H
#define LEAKTOOLS_RECORDER_CALL_COUNTS_H

#include "recorder/held/held_blocks.h"
#include "recorder/output/perf_writer.h"
#include "recorder/programs/bpf_recorder.h"
#include "recorder/windows/hit_costs.h"
#include "recorder/windows/looks.h"

struct call_counts;

/* All of them must outlive it. */
struct call_counts_of {
	struct bpf_recorder *recorder;
	struct held_blocks *held; /* keeps stacks */
	const struct hit_costs *costs;
	double share; /* of the CPU time, that the recording may cost */
};

/*
 * Returns 0 or -ENOMEM. NULL is a call_counts that does nothing, as if there were no such
 * functions.
 */
int call_counts_create(const struct call_counts_of *of, struct call_counts **ret);
/* Ends all counts, which may take a moment. */
void call_counts_destroy(struct call_counts *counts);

/*
 * Between windows, when all samples have come: ends the counts of what has ended, or become hot,
 * and maybe chooses a stack for the next window, which takes some milliseconds of CPU time. Says
 * nothing of what fails.
 */
void call_counts_serve(struct call_counts *counts, const struct looks *looks);

/* Just before a window: probes the functions of the stack that was chosen. */
void call_counts_begin_trial(struct call_counts *counts);

/*
 * The window has closed, after @window_ns, or none was opened (0): the probes are removed. If one
 * of the functions is rare enough, call_counts_serve() begins to count it.
 */
void call_counts_end_trial(struct call_counts *counts, uint64_t window_ns);

/* Writes what has been counted up to now. Returns 0 or the writer's error. */
int call_counts_write(const struct call_counts *counts, struct perf_writer *writer);

#endif
