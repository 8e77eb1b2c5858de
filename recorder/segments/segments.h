/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording in segments (docs/segments.md): cuts it when a segment is full, and writes the state
 * with which the next one begins.
 *
 * A cut is between two rounds, at the time at which the last one began: all samples and side
 * records from before are in the old segment, and no others. The reader sees to that
 * (ring_reader.h), and records from after that time wait here (segments_add_side()).
 */
#ifndef LEAKTOOLS_RECORDER_SEGMENTS_H
#define LEAKTOOLS_RECORDER_SEGMENTS_H

#include "recorder/held/held_blocks.h"
#include "recorder/output/build_ids.h"
#include "recorder/output/perf_writer.h"
#include "recorder/segments/segment_keeper.h"

struct segments;

/* The fewest bytes that a directory can be limited to. */
#define SEGMENTS_MIN_BYTES ((uint64_t)64 << 20)

/*
 * Opens the directory @path. *@ret_fd is the descriptor of the first segment, whose path is
 * segments_name(). Returns 0 or a negative errno, reported.
 */
int segments_create(const char *path, const struct segment_limits *limits, struct segments **ret,
		    int *ret_fd);
void segments_destroy(struct segments *segments); /* after the writer; NULL is fine */

/*
 * The recording has failed, and its writer is destroyed: removes the segment if it has nothing of
 * what happened. NULL is fine.
 */
void segments_drop_unused(struct segments *segments);

const char *segments_name(const struct segments *segments);

/* How many held blocks a segment may list. */
size_t segments_max_blocks(const struct segments *segments);

/* Adds the events of the samples to @events, before the header is written. Returns 0 or -ENOMEM. */
int segments_describe(struct record_events *events, const struct record_config *config);

/* Before perf_writer_begin(): side records that are written are noted. */
void segments_watch(struct segments *segments, struct perf_writer *writer);

/*
 * Before it, too: removes what is beyond the limits, whose room it may need. @held, which keeps
 * stacks, gets what is recorded. The calling thread still may change users. Returns 0 or a negative
 * errno, reported.
 */
int segments_start(struct segments *segments, struct held_blocks *held);

/*
 * The recording begins: writes the first segment's sample, of process @pid. Returns 0 or the
 * writer's error, as the next ones.
 */
int segments_begin(struct segments *segments, pid_t pid, uint64_t start_ns);

/* Writes a side record; if it is from after @until_ns, with segments_add_waiting(). */
int segments_add_side(struct segments *segments, const struct perf_event_header *record,
		      uint64_t until_ns);
int segments_add_waiting(struct segments *segments);

/* Where the recording is. */
struct segments_now {
	uint64_t round_ns; /* when the last round began */
	bool is_whole;	   /* it has brought all from before, and nothing else */
	uint64_t lost;	   /* events so far */
	const struct build_ids *build_ids;
};

/*
 * After each round: cuts, if it is time. Returns 1 if it has, 0 if not, the writer's error, or
 * another one, reported.
 */
int segments_serve(struct segments *segments, const struct segments_now *now);

/*
 * In memory: has what was recorded until @now_ns, and is still there, written because of @reason,
 * which is valid from then on. If something is to be written already, that has it, too.
 */
void segments_write(struct segments *segments, const char *reason, uint64_t now_ns);

/* How many conditions of earlier recordings have had written into the directory. */
uint32_t segments_written_before(const struct segments *segments);

/* True if that has not come to its cut. */
bool segments_are_asked(const struct segments *segments);

/*
 * In memory, after perf_writer_finish(): writes what is to be written, or all because of @reason if
 * that is not NULL. When @gives_up returns true, the rest is left out. Returns 0, or a negative
 * errno, reported, if any of the recording's could not be written.
 */
int segments_end(struct segments *segments, const char *reason, bool (*gives_up)(void));

/* After it: ", 2 written, the last 35.2 s not written". The caller frees it. NULL: out of memory.
 */
char *segments_describe_ring(const struct segments *segments);

/* Ends the recording's last segment: nothing is cut any more. Reports what was not kept. */
void segments_report(const struct segments *segments);

#endif
