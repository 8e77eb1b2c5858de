/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes segments that are in memory into a directory (docs/segments.md, Flight recorder): a thread
 * with the rights of the directory's owner and no capabilities, beside that of segment_keeper.h. So
 * the recording goes on meanwhile, and what it drops from memory stays until it is written.
 *
 * The newest segment is written first, each under a name that no reader takes for a segment until
 * it is complete. So what a full disk, or an end of leakrec, leaves is a recording without a hole.
 */
#ifndef LEAKTOOLS_RECORDER_RING_OUTPUT_H
#define LEAKTOOLS_RECORDER_RING_OUTPUT_H

#include "recorder/segments/closed_segments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct ring_output;

/* The reason of what is written at SIGUSR2: not a condition. */
#define RING_ON_SIGNAL "SIGUSR2"

/* What has been written so far. */
struct ring_written {
	uint32_t nr, nr_failed;
	uint64_t bytes;
	uint64_t until_ns;  /* the end of the last one that was written; 0: there is none */
	uint32_t nr_before; /* that conditions of earlier recordings had written there */
};

/*
 * For the directory @dir_fd of @owner, which messages call @dir; both outlive it. NULL: out of
 * memory.
 */
struct ring_output *ring_output_create(int dir_fd, const char *dir, const struct stat *owner);

/* Ends the thread when it has written what it was told. NULL is fine. */
void ring_output_destroy(struct ring_output *output);

/*
 * Starts the thread. Call it while this thread may change users. Returns 0 or a negative errno,
 * reported.
 */
int ring_output_start(struct ring_output *output);

/* True if it has not written yet what it was told. */
bool ring_output_is_busy(struct ring_output *output);

/*
 * Writes @segments, the oldest one first in the list, into a new directory whose name has the time
 * (UTC) at which they end, @until_ns of CLOCK_MONOTONIC, and @reason. It takes over the list and
 * its descriptors, and is not busy. Success and failure are reported.
 */
void ring_output_write(struct ring_output *output, const char *reason,
		       struct closed_segment *segments, size_t nr, uint64_t until_ns);

/* Leaves out what is not written yet. */
void ring_output_abandon(struct ring_output *output);

struct ring_written ring_output_written(struct ring_output *output);

#endif
