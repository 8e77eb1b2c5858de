/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the kernel from swapping perf contexts between tasks, which before Linux 6.12 loses events
 * and tells nobody.
 *
 * A new task's context is a clone of its creator's if all events were inherited. The scheduler
 * swaps two clones instead of switching them (perf_event_context_sched_out(), kernel/events/core.c,
 * Linux 6.1), but the hw.target of their uprobe events stays. When a task exits, the events in the
 * context that it has got are freed, and with them the breakpoints of hw.target's memory
 * (uprobe_perf_close(), kernel/trace/trace_uprobe.c), of a process that goes on. Threads lose
 * them to each other in the same way, once they are of a forked process.
 *
 * A context is no clone if one event of the creator's was not inherited (inherited_all in
 * perf_event_init_context()). Each thread gets such a breaker before it creates its first task:
 * those that are recorded from the beginning when their events are opened, the others when they
 * call clone(), where BPF programs hold them meanwhile (context_breakers.bpf.h).
 *
 * A breaker consists of two events that count nothing: one that nobody inherits, and one that new
 * threads inherit and new processes do not, so that a new thread may fork at once. It has to have
 * the former only before it creates a thread.
 *
 * Where a task was created without a breaker, because BPF is not permitted, or the process may not
 * be stopped, events may be missing. That is counted, reported, and told to those who read the
 * recording.
 */
#ifndef LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_H
#define LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_H

#include "common/perf_disk.h"
#include "recorder/bpf/context_breakers_shared.h"
#include "recorder/target_table/target_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct breaker;

/* What the BPF programs at clone() leave: backpressure's (backpressure_clone_watch()). */
struct clone_watch {
	int requests_fd; /* of the ring of struct breaker_request; -1: there are no programs */
	struct breaker_shared *shared;
	struct target_table *targets;
};

struct context_breakers {
	struct breaker *by_tid;
	struct clone_watch watch;
	struct ring_buffer *requests;
	bool are_needed;	 /* there were some to begin with */
	uint64_t nr_unprotected; /* without programs */
	int error;		 /* the first: what could not be opened */
};

/* Opens a breaker for thread @tid. Returns 0, -ESRCH if it is gone, or another negative errno. */
int context_breakers_add(struct context_breakers *breakers, pid_t tid);

/* Closes all. */
void context_breakers_deinit(struct context_breakers *breakers);

/* From now on, threads that want to create tasks are served. Returns 0 or -ENOMEM. */
int context_breakers_watch(struct context_breakers *breakers, const struct clone_watch *watch);

/* To be polled: readable when a thread waits; or -1. */
int context_breakers_fd(const struct context_breakers *breakers);

/* Opens breakers for the threads that wait; backpressure then lets their processes go on. */
void context_breakers_serve(struct context_breakers *breakers);

/* A FORK or EXIT record. */
void context_breakers_handle_task(struct context_breakers *breakers,
				  const struct perf_disk_task *task);

/* How many tasks were created without a breaker, so that events may be missing. */
uint64_t context_breakers_nr_unprotected(const struct context_breakers *breakers);

#endif
