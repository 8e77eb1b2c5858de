/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakrec --scan: at the end of a recording, while it still goes on, leakscan finds out which
 * blocks the processes can still get to. What it says is in the recording: a sample leakrec:reach
 * for each block that is not held, and for each part of a heap (common/schema/reach_class.h).
 */
#ifndef LEAKTOOLS_RECORDER_HEAP_SCAN_H
#define LEAKTOOLS_RECORDER_HEAP_SCAN_H

#include "recorder/output/perf_writer.h"

#include <stdbool.h>
#include <sys/types.h>

#define HEAP_SCAN_MAX_PROCESSES 16
#define HEAP_SCAN_MAX_LINE	4096 /* of leakscan; what is longer is not used */

/* A process that waits to become leakscan for process @pid. */
struct scanner {
	pid_t pid, child;
	int go_fd, lines_fd; /* -1: closed */
};

struct heap_scan {
	struct scanner scanners[HEAP_SCAN_MAX_PROCESSES];
	size_t nr, at;	     /* @at: the one whose lines are read */
	uint64_t stopped_ns; /* when its process was stopped; 0: not known yet */
	char line[HEAP_SCAN_MAX_LINE];
	size_t len;
	bool is_too_long; /* the rest of this line is skipped */
};

/*
 * Starts the scanners, which wait. Call it before rights are dropped, as leakscan needs them.
 * @priority is the niceness that they work with. Returns 0 or a negative errno, reported. Release
 * with heap_scan_deinit(), which also ends scanners that are at work.
 */
int heap_scan_prepare(struct heap_scan *ret, const pid_t *pids, size_t nr_pids, int priority);
void heap_scan_deinit(struct heap_scan *scan);

/* Lets the next scanner begin. Returns the descriptor of its lines, or -1: all have ended. */
int heap_scan_next(struct heap_scan *scan);

/*
 * Reads what the scanner has written, and writes it as samples. Returns 1 when it has ended, 0 to
 * be called again when there is more, or the writer's error.
 */
int heap_scan_read(struct heap_scan *scan, struct perf_writer *writer);

#endif
