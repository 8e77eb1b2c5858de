/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One recording, from the options to the end line: probes, events, rings, output. The session owns
 * everything it sets up and takes it down again in every case, also when it fails half-way.
 */
#ifndef LEAKTOOLS_RECORDER_SESSION_H
#define LEAKTOOLS_RECORDER_SESSION_H

#include "common/live_status.h"
#include "probes/resources/resource_specs.h"
#include "recorder/events/record_events.h"

#include <stdint.h>
#include <sys/types.h>

struct session_options {
	const pid_t *pids; /* processes to attach to; none if @command is given */
	size_t nr_pids;
	const char *cgroup;	/* with RECORD_CGROUP: which */
	char *const *command;	/* argv to start, or NULL */
	const char *output;	/* path, or "-"; NULL: only @view_fd */
	uint64_t duration_ns;	/* 0: until the targets are gone or a signal comes */
	uint64_t mark_every_ns; /* 0: marks by SIGUSR1 only */
	int compression_level;	/* zstd's, 0: none */
	bool mismatch;		/* C++'s operators are recorded, too, and releases' stacks */
	struct record_config config;
	struct resource_specs *resources; /* what is recorded besides memory */
	int argc;			  /* the tool's own command line, for the file's header */
	char *const *argv;
	/* A pipe whose reader shows the recording, taken over; -1: none; and what it is told
	 * besides. */
	bool with_view;
	int view_fd;
	struct live_status *status; /* NULL: nothing */
};

/* Records. Returns 0 or a negative errno, reported. */
int session_run(const struct session_options *options);

#endif
