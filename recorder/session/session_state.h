/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a recording, which its phases share: set-up (session_setup.h), start
 * (session_start.h), recording and end (session_record.h). session.c runs the phases and releases
 * everything.
 */
#ifndef LEAKTOOLS_RECORDER_SESSION_STATE_H
#define LEAKTOOLS_RECORDER_SESSION_STATE_H

#include "recorder/output/marks.h"
#include "recorder/output/memory_samples.h"
#include "recorder/output/own_samples.h"
#include "recorder/processes/launch.h"
#include "recorder/processes/process_list.h"
#include "recorder/conditions/flight.h"
#include "recorder/session/heap_scan.h"
#include "recorder/session/rounds.h"
#include "recorder/segments/segments.h"
#include "recorder/session/session_options.h"
#include "recorder/windows/windows.h"

struct session {
	const struct session_options *options;
	const pid_t *pids; /* the processes to record; if all are, set at the start */
	size_t nr_pids;
	size_t nr_without_entry;	   /* of them, in the target table */
	size_t nr_changed;		   /* files given up, as they changed during set-up */
	struct process_list all_processes; /* holds @pids, unless a command is recorded */
	uint64_t *start_ticks; /* of named processes, as they were when named; or NULL */
	size_t nr_found;       /* if all are recorded: how many were searched for allocators */
	struct launched command;
	int return_syscall;		 /* enum return_syscall, if there are return probes */
	struct allocator_search *search; /* knows the files of allocators */
	struct probe_set probes;     /* of all functions that are recorded, without @own_probes */
	struct probe_set own_probes; /* files whose probes this recording adds and removes */
	struct record_events events;
	struct bpf_recorder *recorder;	  /* or NULL: perf events record */
	struct fork_follow fork_follow;	  /* with @recorder */
	struct dlopen_watch dlopen_watch; /* with @recorder */
	struct file_leases leases;
	struct backpressure *backpressure; /* NULL: samples without room are dropped */
	struct live_unwinder *unwinder;	   /* NULL: there are no dumps, or the file keeps them */
	struct perf_writer *writer;
	struct build_ids build_ids;
	struct rounds rounds;
	int signal_fd;
	int priority_before; /* the niceness of the writer's thread */
	int view_fd;	     /* the viewer's pipe, until there is a writer for it */
	struct marks marks;
	struct memory_samples memory;
	struct heap_scan heap_scan; /* with @options->scan */
	struct held_blocks *held;   /* NULL: nothing needs it */
	struct segments *segments;  /* with @options->keep */
	struct flight flight;	    /* with @options->keep.in_memory */
	struct windows windows;	    /* with @options->budget */
	uint64_t start_ns;
	bool targets_gone;	 /* recording ended because no target is left */
	uint64_t interrupted_ns; /* when a signal ended it; 0: none has */
};

/* True if all processes are recorded, or all of a cgroup. */
static inline bool session_is_system_wide(const struct session *session)
{
	return session->options->config.scope != RECORD_PROCESSES;
}

/* Writes where the recording begins or ends: idle targets have no events there. */
static inline int session_write_bound(const struct session *session, uint64_t time_ns, bool is_end)
{
	return own_samples_write(session->writer, OWN_RECORDING, session->marks.pid, time_ns,
				 is_end, NULL);
}

/* The time at which the recording is to end; UINT64_MAX: none. */
static inline uint64_t session_end_ns(const struct session *session)
{
	uint64_t duration_ns = session->options->duration_ns;

	return duration_ns ? session->start_ns + duration_ns : UINT64_MAX;
}

#endif
