/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records the children of linked processes. A link covers one process (bpf_recorder.h), but
 * children inherit perf events on uprobe events, also across exec, and so do their own children.
 * These events are set up when a process forks for the first time. The process and its child are
 * stopped meanwhile (after_fork() in bpf_recorder.bpf.c), so nothing of the child is missed. The
 * uprobe events are the recorder's own and disturb no other user of a probe.
 *
 * A linked process also gets such events when its first thread ends or another thread execs: by
 * that thread the kernel knows where the link's breakpoints belong.
 *
 * A linked process with many threads gets no events for its children to inherit, since each thread
 * would need some. Each of its children gets its own instead, and the process is stopped for that
 * at each fork. They are closed when the child and all its descendants have ended. When its first
 * thread ends, two other threads have events: they are carriers.
 *
 * Without links (RECORD_BY_SINGLE) all processes are recorded by such events, from the beginning,
 * but none inherits any: before Linux 6.12 they might vanish (context_breakers.h). One thread of a
 * process, a carrier, has an event for each probe. By the carrier's memory the kernel knows which
 * process has the breakpoints (__uprobe_perf_filter() in kernel/trace/trace_uprobe.c, Linux 6.1);
 * the program then runs in all its threads. A second carrier is there for when the first one ends
 * (carriers.bpf.h). So a child waits for events of its own before its first instruction, and a
 * process that creates a thread waits for a second carrier. With -a and --cgroup, and for files
 * that are mapped later, one event for each probe covers all processes.
 */
#ifndef LEAKTOOLS_RECORDER_FORK_FOLLOW_H
#define LEAKTOOLS_RECORDER_FORK_FOLLOW_H

#include "recorder/backpressure/backpressure.h"
#include "recorder/programs/bpf_recorder.h"
#include "recorder/targets/follow_fds.h"

/* A file of own_probes. */
struct follow_file {
	const struct probe_file *original;
	bool is_everywhere; /* RECORD_BY_SINGLE: its events are those of all processes */
};

struct fork_follow {
	struct bpf_recorder *recorder;
	struct backpressure *backpressure;
	struct probe_set own_probes; /* registered when needed; has room for BPF_MAX_SITES files */
	struct follow_file files[BPF_MAX_SITES]; /* as in own_probes */
	struct follow_fds fds; /* the watchdog's, the links to these, and those of processes */
	int error;	       /* the first one; no children are recorded after it */
	bool interrupted;      /* a signal ends the recording: follow no more processes */
};

/* Release with fork_follow_close() and fork_follow_deinit(). */
void fork_follow_init(struct fork_follow *ret, struct bpf_recorder *recorder,
		      struct backpressure *backpressure);

/* Closes the events. Returns 0 or the first error of fork_follow_serve(), already reported. */
int fork_follow_close(struct fork_follow *fork_follow);

/* Removes the probes of the file, also from children. It is about to be overwritten. */
void fork_follow_give_up(struct fork_follow *fork_follow, const struct probe_file *file);

/* Handles an EXIT record: closes the events of that thread. */
void fork_follow_handle_task(struct fork_follow *fork_follow, const struct perf_disk_task *task);

/* Call it after @own_probes has been unregistered. */
void fork_follow_deinit(struct fork_follow *fork_follow);

/*
 * Has events opened for a linked process whose first thread has ended by now: its links put no
 * breakpoints into it (first_thread.bpf.h).
 */
void fork_follow_know_process(struct fork_follow *fork_follow, pid_t pid);

/*
 * Opens events for the processes that wait for them. Backpressure continues the processes after
 * that. The first failure is reported, and kept for fork_follow_close().
 */
void fork_follow_serve(struct fork_follow *fork_follow);

#endif
