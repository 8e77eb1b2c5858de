/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The segments of a recording that are complete, the oldest one first: files of a directory, or
 * files in memory, which have no name. */
#ifndef LEAKTOOLS_RECORDER_CLOSED_SEGMENTS_H
#define LEAKTOOLS_RECORDER_CLOSED_SEGMENTS_H

#include "common/schema/segment_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a directory, or memory, may hold; 0: no limit. */
struct segment_limits {
	uint64_t bytes, age_ns;
	bool in_memory;
};

/*
 * Times are CLOCK_MONOTONIC's, so that no set clock makes a segment older than it is. Of those of
 * earlier recordings, only their last change is known, by the time of day.
 */
struct closed_segment {
	struct segment_name name;
	uint64_t bytes;
	uint64_t began_ns;   /* in memory only */
	int64_t end_ns;	     /* negative: before the machine started */
	uint64_t changed_ns; /* CLOCK_REALTIME, if that was in the future when it was listed */
	int fd;		     /* in memory, else -1 */
};

/* Zero it before use. */
struct closed_segments {
	struct closed_segment *list;
	size_t nr;
};

/* Also closes those in memory. */
void closed_segments_deinit(struct closed_segments *segments);

/* Adds one at the end. Takes over its descriptor if it succeeds. Returns 0 or -ENOMEM. */
int closed_segments_add(struct closed_segments *segments, const struct closed_segment *segment);

/*
 * Adds those of earlier recordings in the directory. *@recording becomes higher than theirs.
 * Returns 0 or a negative errno.
 */
int closed_segments_list(struct closed_segments *segments, int dir_fd, uint32_t *recording);

/* How many bytes closed_segments_drop() would free. */
uint64_t closed_segments_beyond(struct closed_segments *segments,
				const struct segment_limits *limits);

/* Removes the oldest ones beyond @limits. Returns 0 or a negative errno: that of the first one. */
int closed_segments_drop(struct closed_segments *segments, const struct segment_limits *limits,
			 int dir_fd);

/* Copies the list, with descriptors of its own, to the heap. Returns it, or NULL with errno set. */
struct closed_segment *closed_segments_copy(const struct closed_segments *segments);

#endif
