/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that recorded processes map while recording, by dlopen() or exec(): what of them is an
 * allocator is recorded from its first call on, by links that go with the file, not with a process,
 * so that children have them, too. The process that maps a new file is held meanwhile, where that
 * disturbs nobody (dlopen_watch.bpf.h). That takes the recording programs; perf events would have
 * to be named in the recording's header.
 */
#ifndef LEAKTOOLS_RECORDER_DLOPEN_WATCH_H
#define LEAKTOOLS_RECORDER_DLOPEN_WATCH_H

#include "probes/plan/allocator_search.h"
#include "recorder/backpressure/backpressure.h"
#include "recorder/programs/bpf_recorder.h"

struct dlopen_watch {
	struct bpf_recorder *recorder;
	struct backpressure *backpressure;
	struct allocator_search *search;
	bool operators;		 /* C++'s, too: probe_set.h */
	struct probe_set **sets; /* each stays where it is: the places point into it */
	size_t nr_sets;
	size_t nr_known; /* files of @search's that the programs know */
};

/* @search knows the files that are recorded already. Release with dlopen_watch_deinit(). */
void dlopen_watch_init(struct dlopen_watch *ret, struct bpf_recorder *recorder,
		       struct backpressure *backpressure, struct allocator_search *search);

/* Takes what code process @pid has now for looked at: before it goes on to be recorded. */
void dlopen_watch_know_process(struct dlopen_watch *watch, pid_t pid);

/* After the programs. */
void dlopen_watch_deinit(struct dlopen_watch *watch);

/*
 * Looks at what the processes have mapped that wait for it; backpressure then lets them go on. What
 * cannot be recorded is reported. It returns after a short time, for the rings to be drained: only
 * who maps files that take long is to wait for them.
 */
void dlopen_watch_serve(struct dlopen_watch *watch);

/* True if dlopen_watch_serve() is to be called again at once. */
bool dlopen_watch_is_waiting(const struct dlopen_watch *watch);

#endif
