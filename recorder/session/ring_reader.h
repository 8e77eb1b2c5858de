/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves records from the kernel's rings to the writer, in rounds: one round takes what each ring
 * held when the round came to it, and ends with a FINISHED_ROUND record. Whatever a later round
 * brings is not older than the newest record of the round before the last one: that is what readers
 * rely on to put records in time order (perf's rule, tools/perf/util/session.c). A program's record
 * has its time from after its place in the ring was taken, so where a ring is read up to its end,
 * that holds; where one was still being written, the round does not end there.
 *
 * Where stacks are unwound, a sample must meet the mappings of its instant. So a round takes only
 * samples from before it began: the side rings, drained first, then hold every mapping that they
 * need. And it takes them in portions, of all rings, between which the mappings take effect by
 * their times. A sample that comes too late for its portion, because it was still being written, is
 * of a thread that was still in its probe: what that thread's own stack needs is still mapped.
 */
#ifndef LEAKTOOLS_RECORDER_RING_READER_H
#define LEAKTOOLS_RECORDER_RING_READER_H

#include "recorder/output/build_ids.h"
#include "recorder/targets/fork_follow.h"
#include "recorder/backpressure/backpressure.h"
#include "recorder/targets/dlopen_watch.h"
#include "recorder/output/live_unwinder.h"
#include "recorder/output/perf_writer.h"
#include "recorder/events/record_events.h"

struct ring_reader {
	struct record_events *events;
	struct perf_writer *writer;
	struct build_ids *build_ids;	   /* of what is mapped meanwhile */
	struct backpressure *backpressure; /* or NULL */
	struct bpf_recorder *programs;	   /* that record, or NULL: perf events do */
	struct fork_follow *follow;	   /* with @programs */
	struct dlopen_watch *late;	   /* with @programs, or NULL */
	struct live_unwinder *unwinder;	   /* of dumps, or NULL: samples are written as they are */
	int marks_fd;			   /* readable when a mark is to be set (marks.h) */
	bool is_everywhere;		   /* all processes of the machine are looked at */
	bool stopped;			   /* nothing is recorded any more */
	uint64_t start_ns, end_ns;	   /* CLOCK_MONOTONIC, as the samples' */
	uint64_t samples;		   /* of probes */
	uint64_t taken;			   /* samples out of perf rings, those left out included */
	uint64_t lost;			   /* as LOST records tell */
	uint64_t lost_by_programs;	   /* in the end: also what no record tells of */
	uint64_t wrapped[UINT16_MAX / sizeof(uint64_t) + 1]; /* a record, in one piece */
};

/* Drains all rings once. Returns 0 or the writer's error. */
int ring_reader_round(struct ring_reader *reader);

/*
 * Waits for a ring to need draining, at most @timeout_ms, or for @signal_fd to be readable. Returns
 * 1 when @signal_fd is, 0 to go on, -ESRCH when every recorded task is gone, or a negative errno.
 */
int ring_reader_wait(struct ring_reader *reader, int signal_fd, int timeout_ms);

/*
 * Ends the recording: disables the events and takes what they have recorded until now. Returns 0 or
 * the writer's error.
 */
int ring_reader_stop(struct ring_reader *reader);

/* Where nothing can be written any more: ends the recording, and counts what was lost so far. */
void ring_reader_abandon(struct ring_reader *reader);

/*
 * After the last round: writes how many samples were lost by the kernel's own counters, as perf
 * does. LOST records come with the next record that fits, which may never come.
 */
int ring_reader_finish(struct ring_reader *reader);

#endif
