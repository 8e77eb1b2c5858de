/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakrec --scan: leakscan finds out which blocks the processes can still get to, while they are
 * recorded: where the recording ends, and whenever SIGUSR2 comes. What it says is in the recording:
 * a sample leakrec:reach for each block that is not held, and for each part of a heap
 * (common/schema/reach_class.h).
 */
#ifndef LEAKTOOLS_RECORDER_HEAP_SCAN_H
#define LEAKTOOLS_RECORDER_HEAP_SCAN_H

#include "recorder/held/held_blocks.h"
#include "recorder/output/perf_writer.h"

#include <stdbool.h>
#include <sys/types.h>

#define HEAP_SCAN_MAX_PROCESSES 16
#define HEAP_SCAN_MAX_LINE	4096 /* of leakscan; what is longer is not used */

/* A process that has leakscan scan process @pid, whenever it is told to. */
struct scanner {
	pid_t pid, child;    /* @child leads a process group */
	int go_fd, lines_fd; /* -1: closed */
	/* If leakscan needs the blocks: the list, and a byte for each that is in it; else -1. */
	int list_fd, listed_fd;
};

struct heap_scan {
	struct scanner scanners[HEAP_SCAN_MAX_PROCESSES];
	size_t nr, at; /* @nr is 0 without --scan; @at: the one that is at work */
	int signal_fd; /* readable when SIGUSR2 has come */
	bool is_running, is_wanted;
	bool is_ending;	     /* SIGUSR2 comes too late */
	unsigned int number; /* of the scan that is running, or was the last */
	size_t nr_scanned;   /* processes */
	uint64_t nr_lost, lost_bytes;
	uint64_t nr_without_holder, without_holder_bytes; /* REACH_NO_HOLDER */
	bool is_traced;			/* of a process, only recorded blocks were known */
	const struct held_blocks *held; /* or NULL: no process needs it */
	/* Of the process that is scanned: */
	uint64_t end_ns;     /* when it is left out */
	uint64_t stopped_ns; /* when it was stopped; 0: not known yet */
	uint64_t asked_ns;   /* leakscan waits for the blocks that were held then; 0: it does not */
	bool is_in_doubt;    /* no block of it is called lost */
	char line[HEAP_SCAN_MAX_LINE];
	size_t len;
	bool is_too_long; /* the rest of this line is skipped */
};

/*
 * From now on SIGUSR2 asks for a scan instead of ending the process. Call it before creating
 * threads and processes. Returns 0 or a negative errno, reported.
 */
int heap_scan_init(struct heap_scan *ret);
void heap_scan_deinit(struct heap_scan *scan);

/*
 * Starts the scanners, which wait. Call it before rights are dropped, as leakscan needs them.
 * @priority is the niceness that they work with; @pause_limit_ns is how long a process may stand
 * still, 0: leakscan's own limit. @held, which may be NULL, has the blocks of allocators that
 * leakscan does not know. Returns 0 or a negative errno, reported.
 */
int heap_scan_prepare(struct heap_scan *scan, const pid_t *pids, size_t nr_pids, int priority,
		      uint64_t pause_limit_ns, const struct held_blocks *held);

/* Ends the scanners, also those that are at work. */
void heap_scan_stop(struct heap_scan *scan);

/* No scan begins any more, but one if @with_scan. */
void heap_scan_end(struct heap_scan *scan, bool with_scan);

/* True if a scan is running or wanted. */
bool heap_scan_is_busy(const struct heap_scan *scan);

/* The descriptor that is readable when a scanner has written something; -1: none is at work. */
int heap_scan_lines_fd(const struct heap_scan *scan);

/*
 * Begins the scan that is wanted, and writes as samples what the scanner has written. Call it in
 * each round, also without --scan. Returns 0 or the writer's error.
 */
int heap_scan_serve(struct heap_scan *scan, struct perf_writer *writer);

#endif
