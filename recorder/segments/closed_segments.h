/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The segments of a recording that are complete, the oldest one first: files of a directory, or
 * files in memory, which have no name. */
#ifndef LEAKTOOLS_RECORDER_CLOSED_SEGMENTS_H
#define LEAKTOOLS_RECORDER_CLOSED_SEGMENTS_H

#include "common/schema/segment_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What a directory, or memory, may hold; 0: no limit. */
struct segment_limits {
	uint64_t bytes, age_ns;
	bool in_memory;
};

struct closed_segment {
	struct segment_name name;
	uint64_t bytes;
	uint64_t began_ns, end_ns; /* CLOCK_REALTIME; it began: in memory only */
	int fd;			   /* in memory, else -1 */
};

/* Zero it before use. */
struct closed_segments {
	struct closed_segment *list;
	size_t nr;
};

/* Also closes those in memory. */
void closed_segments_deinit(struct closed_segments *segments);

/*
 * Adds one, of which @st tells, at the end. Takes over @fd (-1: none) if it succeeds. Returns 0 or
 * -ENOMEM.
 */
int closed_segments_add(struct closed_segments *segments, struct segment_name name,
			const struct stat *st, int fd, uint64_t began_ns);

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
