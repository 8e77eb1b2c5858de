/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: moments of a recording that a report may tell what changed between (leakparse --diff). The
 * user sets them by SIGUSR1, or a clock does. In the recording each is a sample of the tracepoint
 * event leakrec:mark, which no kernel has; perf script prints it like any other. So is a doubt.
 */
#ifndef LEAKTOOLS_RECORDER_MARKS_H
#define LEAKTOOLS_RECORDER_MARKS_H

#include "recorder/output/perf_writer.h"

struct marks {
	int fd;		   /* readable when SIGUSR1 has come */
	uint64_t every_ns; /* 0: by signal only */
	uint64_t next_ns;  /* CLOCK_MONOTONIC; UINT64_MAX: none is due by time */
	uint64_t end_ns;   /* the last that may be due */
	uint64_t nr;	   /* so far */
	pid_t pid;	   /* whose marks they are, for perf script */
};

/*
 * From here on SIGUSR1 sets a mark instead of ending the process. To be called before threads and
 * other processes are made. Returns 0 or a negative errno, reported.
 */
int marks_init(struct marks *ret, uint64_t every_ns);
void marks_deinit(struct marks *marks);

/* Adds their event to @events, and that of doubts if there may be some, to be called before the
 * recording's header is written. Returns 0 or -ENOMEM. */
int marks_describe(struct record_events *events, const struct record_config *config,
		   bool with_doubts);

/*
 * Writes that events of @nr tasks may be missing, and that nobody counted them: a sample of
 * leakrec:doubt, which makes what is held doubtful. Returns 0 or the writer's error.
 */
int marks_write_doubt(pid_t pid, uint64_t time_ns, uint64_t nr, struct perf_writer *writer);

/* Recording begins at @start_ns (CLOCK_MONOTONIC), and no mark by time is due after @end_ns. */
void marks_start(struct marks *marks, uint64_t start_ns, uint64_t end_ns, pid_t pid);

/* Writes the marks that are due. Returns 0 or the writer's error. */
int marks_write(struct marks *marks, struct perf_writer *writer);

#endif
