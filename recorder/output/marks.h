/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: moments of a recording between which reports compare (leakparse --diff). SIGUSR1 or a
 * timer sets them. In the recording, a mark is a sample of the event leakrec:mark, a doubt one of
 * leakrec:doubt (own_samples.h).
 */
#ifndef LEAKTOOLS_RECORDER_MARKS_H
#define LEAKTOOLS_RECORDER_MARKS_H

#include "recorder/output/perf_writer.h"

struct marks {
	int fd;		   /* readable when SIGUSR1 has come */
	uint64_t every_ns; /* 0: by signal only */
	uint64_t next_ns;  /* CLOCK_MONOTONIC; UINT64_MAX: none is due by time */
	uint64_t end_ns;   /* no mark is due after this */
	uint64_t nr;	   /* so far */
	pid_t pid;	   /* the process of the samples, for perf script */
};

/*
 * From now on SIGUSR1 sets a mark instead of ending the process. Call it before creating threads
 * and processes. Returns 0 or a negative errno, reported.
 */
int marks_init(struct marks *ret, uint64_t every_ns);
void marks_deinit(struct marks *marks);

/*
 * Adds the events of marks and doubts to @events, before the header is written. Returns 0 or
 * -ENOMEM.
 */
int marks_describe(struct record_events *events, const struct record_config *config);

/*
 * Writes a sample of leakrec:doubt, which says that events of @nr tasks may be missing although no
 * counter shows it. Reports then call held blocks doubtful. Returns 0 or the writer's error.
 */
int marks_write_doubt(pid_t pid, uint64_t time_ns, uint64_t nr, struct perf_writer *writer);

/* Recording begins at @start_ns (CLOCK_MONOTONIC), and no mark by time is due after @end_ns. */
void marks_start(struct marks *marks, uint64_t start_ns, uint64_t end_ns, pid_t pid);

/* Writes the marks that are due. Returns 0 or the writer's error. */
int marks_write(struct marks *marks, struct perf_writer *writer);

#endif
