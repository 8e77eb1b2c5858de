/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rounds of a recording. Each round drains the rings and then reacts to what it met: it follows
 * forks, inspects new files, opens breakers, and lets stopped processes go on. Reactions come
 * between drains, never inside one, and each of them bounds its own time, so the rings are drained
 * often enough. The analysis of a file takes longest: it pauses for rings that are half full.
 */
#ifndef LEAKTOOLS_RECORDER_ROUNDS_H
#define LEAKTOOLS_RECORDER_ROUNDS_H

#include "recorder/conditions/process_ends.h"
#include "recorder/backpressure/backpressure.h"
#include "recorder/output/memory_samples.h"
#include "recorder/session/heap_scan.h"
#include "recorder/drain/ring_reader.h"
#include "recorder/targets/dlopen_watch.h"
#include "recorder/targets/fork_follow.h"
#include "recorder/targets/given_up.h"

struct rounds {
	struct ring_reader reader;
	struct backpressure *backpressure; /* or NULL */
	struct fork_follow *fork_follow;   /* or NULL */
	struct dlopen_watch *dlopen_watch; /* or NULL */
	struct given_up given_up;
	struct memory_samples *memory;
	struct process_ends *ends; /* or NULL */
	uint64_t most_bytes;	   /* what the fullest perf ring held in the last round */
	int marks_fd;		   /* readable when a mark is to be set (marks.h) */
	const struct heap_scan *scan;
	uint64_t nr_cut_off;	   /* hits at the end that may have no sample: no losses */
	uint64_t lost_by_programs; /* set by rounds_stop(), with what no record tells */
	int err;		   /* the writer's, while a file was analysed */
};

/* Runs one round, or more where backpressure needs it. Returns 0 or the writer's error. */
int rounds_run(struct rounds *rounds);

/* True if the rings of the recording programs have been read to their ends. */
bool rounds_have_drained(const struct rounds *rounds);

/* True if a ring is more than half full, or a perf ring was in the last round. */
bool rounds_are_busy(const struct rounds *rounds);

/*
 * Waits for a ring to need draining, at most @timeout_ms, or for @signal_fd to be readable. Returns
 * 1 when @signal_fd is, 0 to go on, -ESRCH when every recorded task is gone, or a negative errno.
 */
int rounds_wait(struct rounds *rounds, int signal_fd, int timeout_ms);

/*
 * Ends the recording at reader->end_ns, which is now: disables the events and drains what they have
 * recorded until then. Returns 0 or the writer's error.
 */
int rounds_stop(struct rounds *rounds);

/* Ends the recording after a failure to write, and counts what was lost so far. */
void rounds_abandon(struct rounds *rounds);

/*
 * After the last round: writes how many samples the kernel's own counters say were lost, as perf
 * does. A LOST record comes with the next record that fits, which may never come.
 */
int rounds_finish(struct rounds *rounds);

#endif
