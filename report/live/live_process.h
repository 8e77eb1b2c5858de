/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's side of the live parser (live_parser.h), which is a process of its own: it parses
 * hostile input, so it has no rights, and a broker of its own (live_services.h) opens files for
 * names and writes. Its memory is limited. The recorder never waits for it while it records: what
 * has no room in the pipe is left out (perf_writer_never_wait()). If it dies, only what it writes
 * is lost.
 */
#ifndef LEAKTOOLS_REPORT_LIVE_PROCESS_H
#define LEAKTOOLS_REPORT_LIVE_PROCESS_H

#include "common/live_status.h"

#include <stdbool.h>
#include <sys/types.h>

#define LIVE_EVERY_NS UINT64_C(60000000000)

struct live_options {
	const char *dir;     /* --live: a directory for the state; NULL: none */
	const char *metrics; /* --metrics: a file; NULL: none */
	const char *on_leak; /* --on-leak: a program and its arguments; NULL: none */
	uint64_t every_ns;   /* --live-every */
};

static inline bool live_is_wanted(const struct live_options *options)
{
	return options->dir || options->metrics || options->on_leak;
}

struct live_process {
	pid_t pid;
	int stream_fd; /* write end for the recording; its writer closes it */
	int done_fd;   /* brings a byte when the last state is written */
	struct live_status *status;
};

/*
 * Opens what will be written, and starts the process. Call it before creating threads. Returns 0 or
 * a negative errno, reported.
 */
int live_process_start(const struct live_options *options, struct live_process *ret);

/*
 * Waits until the last state is written, for ten seconds at most; close the recording's stream
 * first. Commands that run then may outlive this process. Returns 0, or a negative errno, reported,
 * if the process ended without that.
 */
int live_process_finish(struct live_process *process);

#endif
