/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of one recording, as the command line gives them. */
#ifndef LEAKTOOLS_RECORDER_SESSION_OPTIONS_H
#define LEAKTOOLS_RECORDER_SESSION_OPTIONS_H

#include "common/live_status.h"
#include "common/service/service_manager.h"
#include "probes/calls/call_list.h"
#include "probes/resources/resource_specs.h"
#include "recorder/conditions/condition.h"
#include "recorder/events/record_events.h"
#include "recorder/segments/segment_keeper.h"

#include <stdint.h>
#include <sys/types.h>

#define SESSION_DEFAULT_COMPRESSION (-1)

struct session_options {
	const pid_t *pids; /* processes to attach to; none if @command is given */
	size_t nr_pids;
	bool pids_are_found;	      /* not named: those that have ended are left out */
	bool with_children;	      /* of @pids: those that exist already, and theirs */
	const char *cgroup;	      /* with RECORD_CGROUP: its path */
	char *const *command;	      /* argv to start, or NULL */
	const char *output;	      /* path, or "-"; NULL: only @view_fd */
	uint64_t duration_ns;	      /* 0: until the targets have ended or a signal comes */
	uint64_t mark_every_ns;	      /* 0: marks by SIGUSR1 only */
	int compression_level;	      /* zstd's, 0: none; SESSION_DEFAULT_COMPRESSION: files only */
	bool scan;		      /* find out what the processes can still get to */
	uint64_t scan_pause_limit_ns; /* how long a scan may stop a process; 0: leakscan's limit */
	struct segment_limits keep;   /* what @output, a directory then, or memory may hold */
	const char *when[CONDITIONS_MAX]; /* with keep.in_memory: conditions that can be parsed */
	size_t nr_when;
	double budget; /* the share of CPU time to keep to; 0: no limit */
	bool mismatch; /* record C++'s operators and the stacks of releases, too */
	struct record_config config;
	struct resource_specs *resources; /* what is recorded besides memory */
	struct call_list *calls; /* with config.at_calls: those of the cause that is recorded */
	int argc;		 /* the tool's own command line, for the file's header */
	char *const *argv;
	struct service_manager *manager; /* is told how the recording goes; NULL: nobody is */
	bool tells_way;			 /* say what records, and why */
	bool with_view;
	int view_fd; /* a pipe to the viewer, which gets the recording, too; taken over; -1: none */
	pid_t live_parser; /* it reads @view_fd, and must not hold up the recording; 0: none does */
	bool needs_live_parser; /* the recording ends with it, also if it is written to @output */
	struct live_status *status; /* counters that the viewer shows, too; NULL: there is none */
};

/* True if the recording is in segments, in the directory @output or in memory. */
static inline bool session_options_keep(const struct session_options *options)
{
	return options->keep.bytes || options->keep.age_ns;
}

#endif
