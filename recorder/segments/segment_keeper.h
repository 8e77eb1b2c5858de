/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a recording in segments: a thread that makes the next one, and removes the oldest
 * ones (docs/segments.md). It has the rights of the directory's owner and no capabilities, so files
 * belong to that user, whoever records. One segment is current; its successor is asked for, taken,
 * and settled; then the next one can be asked for.
 *
 * In memory, the segments are files that have no name, and nothing is in the directory until it is
 * asked for (ring_output.h).
 */
#ifndef LEAKTOOLS_RECORDER_SEGMENT_KEEPER_H
#define LEAKTOOLS_RECORDER_SEGMENT_KEEPER_H

#include "recorder/segments/closed_segments.h"
#include "recorder/segments/ring_output.h"

#include <stddef.h>
#include <stdint.h>

struct segment_keeper;

/*
 * Opens the directory @path (output_dir_open()), locks it, and makes the first segment, whose
 * descriptor is *@ret_fd, the caller's. Returns 0 or a negative errno, reported.
 */
int segment_keeper_create(const char *path, const struct segment_limits *limits,
			  struct segment_keeper **ret, int *ret_fd);

/*
 * Ends the thread when it has done what it was told, and unlocks the directory. The first segment
 * is removed if it is empty, and the next one if it was not taken. NULL is fine.
 */
void segment_keeper_destroy(struct segment_keeper *keeper);

/*
 * Starts the thread, and waits until it has removed what is beyond the limits: on a full disk, the
 * first segment needs that room. Call it while this thread may change users, and has the priority
 * that the other one is to have. Returns 0 or a negative errno, reported.
 */
int segment_keeper_start(struct segment_keeper *keeper);

/*
 * Each later segment begins with the @size bytes at @head, which must outlive the thread. Call it
 * before segment_keeper_want().
 */
void segment_keeper_set_head(struct segment_keeper *keeper, const char *head, size_t size);

/* Removes the current segment, if it is the first one and has a file. */
void segment_keeper_drop_first(struct segment_keeper *keeper);

/* The path of the current segment, for messages. Valid until the next but one. */
const char *segment_keeper_name(const struct segment_keeper *keeper);

/* The number of the current segment, from 1 on. */
uint32_t segment_keeper_number(const struct segment_keeper *keeper);

/* Has the next segment made, unless that was asked for, or the last one is not settled yet. */
void segment_keeper_want(struct segment_keeper *keeper);

/*
 * Takes the segment that was made, if there is one, which is now the current one. Returns its
 * descriptor, which the caller closes; -EAGAIN: there is none yet; or the thread's failure,
 * reported.
 */
int segment_keeper_take(struct segment_keeper *keeper);

/* The file @fd of the segment before is complete; takes it over. */
void segment_keeper_complete(struct segment_keeper *keeper, int fd);

/*
 * The current segment has its state. When that is on the disk, the oldest ones are removed as far
 * as the limits demand it.
 */
void segment_keeper_settle(struct segment_keeper *keeper);

/*
 * In memory: when the next segment is settled, all those from before are written into a directory
 * of their own, because of @reason. Call it before segment_keeper_complete() can be called, while
 * segment_keeper_is_writing() is false. Returns 0 or -ENOMEM, reported.
 */
int segment_keeper_write(struct segment_keeper *keeper, const char *reason);
bool segment_keeper_is_writing(const struct segment_keeper *keeper);

/*
 * In memory, when the current segment is complete and there will be no other one: ends the thread
 * when it has done what it was told. Then, while segment_keeper_is_writing() is false, all segments
 * can be written because of @reason. Returns 0 or a negative errno, reported.
 */
void segment_keeper_end(struct segment_keeper *keeper);
int segment_keeper_write_last(struct segment_keeper *keeper, const char *reason);

/* In memory: what has been written, and what is to be written left out. */
struct ring_written segment_keeper_written(const struct segment_keeper *keeper);
void segment_keeper_abandon(struct segment_keeper *keeper);

/* In memory: when the oldest segment began (CLOCK_MONOTONIC), after segment_keeper_end(). */
uint64_t segment_keeper_began_ns(const struct segment_keeper *keeper);

#endif
