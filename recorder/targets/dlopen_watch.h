/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches files that recorded processes map while recording, by dlopen() or exec(). An allocator
 * among them is recorded from its first call on, by links that cover the file in all processes, so
 * also in children. The process that maps a new file is stopped meanwhile, unless it is exempt
 * (dlopen_watch.bpf.h). Only the recording programs can do this: perf events would have to be in
 * the recording's header already.
 */
#ifndef LEAKTOOLS_RECORDER_DLOPEN_WATCH_H
#define LEAKTOOLS_RECORDER_DLOPEN_WATCH_H

#include "probes/plan/allocator_search.h"
#include "recorder/backpressure/backpressure.h"
#include "recorder/programs/bpf_recorder.h"
#include "recorder/targets/file_leases.h"

/* What shows whether a file may have gone unseen. */
struct dlopen_watch_counts {
	uint64_t nr_skipped;  /* uses of files at which the programs may have been skipped */
	uint64_t nr_gone;     /* processes that have ended, or have become another program */
	uint64_t nr_recorded; /* files, as below */
};

struct dlopen_watch {
	struct bpf_recorder *recorder;
	struct backpressure *backpressure;
	struct allocator_search *search;
	struct file_leases *leases; /* of the files found, too */
	bool operators;		    /* with C++'s operators: probe_set.h */
	struct probe_set **sets;    /* the sites point into the sets, which must not move */
	size_t nr_sets;
	uint64_t nr_recorded; /* files that were mapped while recording */
	/* The search for files that have gone unseen: dlopen_watch.c, make_up(). */
	struct dlopen_watch_counts made_up; /* all processes were looked at after that */
	struct dlopen_watch_counts begun;   /* when the walk through the table began */
	const struct target *looked_at;	    /* the last one in this walk; NULL: none */
	bool is_walking;
	bool is_incomplete; /* the walk left files of a process to the next one */
	bool only_notes;    /* the recording has ended */
	double share;	    /* of a CPU's time that the search may take */
	uint64_t next_look_ns;
};

/* @search knows the files that are recorded already. Release with dlopen_watch_deinit(). */
void dlopen_watch_init(struct dlopen_watch *ret, struct bpf_recorder *recorder,
		       struct backpressure *backpressure, struct allocator_search *search,
		       struct file_leases *leases);

/* Takes the present code of process @pid for inspected. Call it before the process continues. */
void dlopen_watch_know_process(struct dlopen_watch *watch, pid_t pid);

/* Call it after bpf_recorder_destroy(). */
void dlopen_watch_deinit(struct dlopen_watch *watch);

/*
 * Inspects the files that waiting processes have mapped. Backpressure continues the processes after
 * that. Failures are reported. It returns after a short time, so that the rings get drained; only
 * processes whose files take long wait for them.
 */
void dlopen_watch_serve(struct dlopen_watch *watch);

/*
 * When the programs have stopped. Where the kernel may have skipped those that notice new files,
 * dlopen_watch_serve() looks at the files of all processes of the target table, a few in each
 * round. This looks at them for a last short time, and records nothing any more; nor do later
 * rounds.
 *
 * It is told that first calls may be missing (bpf_recorder_note_skipped()) if there was a skip, and
 * since the last time without one:
 * - an allocator was found, by the search or otherwise;
 * - a process of the table has ended or has become another program;
 * - the search did not come to an end;
 * - or all processes or those of a cgroup are recorded: the table does not have each of them.
 * An allocator that a process has unloaded by the time of the look goes unseen.
 */
void dlopen_watch_end(struct dlopen_watch *watch);

/* The content of @file is changing: it is inspected again when a process next maps its code. */
void dlopen_watch_forget(struct dlopen_watch *watch, const struct probe_file *file);

/* True if dlopen_watch_serve() has to be called again at once. */
bool dlopen_watch_is_waiting(const struct dlopen_watch *watch);

#endif
