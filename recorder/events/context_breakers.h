/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Context breakers keep the kernel from swapping perf contexts between tasks. Before Linux 6.12 a
 * swap loses events, and nothing reports that.
 *
 * A new task's context is a clone of its creator's if all events were inherited. The scheduler
 * swaps two clones instead of switching them (perf_event_context_sched_out(), kernel/events/core.c,
 * Linux 6.1), but the hw.target of their uprobe events stays. When a task exits, the kernel frees
 * the events of the context that the task has by then, and removes the breakpoints from the memory
 * of hw.target (uprobe_perf_close(), kernel/trace/trace_uprobe.c), which may be a process that goes
 * on. Threads of a forked process lose breakpoints to each other in the same way.
 *
 * A context is no clone if one event of the creator was not inherited (inherited_all in
 * perf_event_init_context()). So each thread gets such an event, a breaker, before it creates its
 * first task. Threads that are recorded from the beginning get it when their events are opened. The
 * others get it when they call clone(), where BPF programs stop them meanwhile
 * (context_breakers.bpf.h).
 *
 * A breaker consists of two events that count nothing. No task inherits the first one. New threads
 * inherit the second one and new processes do not, so a new thread may fork at once. A thread needs
 * the first one only before it creates a thread.
 *
 * A task may be created without a breaker, because BPF is not permitted or the process must not be
 * stopped. Events may then be missing. That is counted, reported, and written to the recording.
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

/* The interface of the BPF programs at clone() (backpressure_clone_watch()). */
struct clone_watch {
	int requests_fd; /* of the ring of struct breaker_request; -1: there are no programs */
	struct breaker_shared *shared;
	struct target_table *targets;
};

struct context_breakers {
	struct breaker *by_tid;
	struct clone_watch watch;
	struct ring_buffer *requests;
	bool are_needed;       /* this kernel swaps contexts */
	uint64_t nr_unguarded; /* counted without programs */
	int error;	       /* the first one */
};

/* Opens a breaker for thread @tid. Returns 0, -ESRCH if it is gone, or another negative errno. */
int context_breakers_add(struct context_breakers *breakers, pid_t tid);

/* Closes all. */
void context_breakers_deinit(struct context_breakers *breakers);

/* Serves threads that want to create tasks from now on. Returns 0 or -ENOMEM. */
int context_breakers_watch(struct context_breakers *breakers, const struct clone_watch *watch);

/* A descriptor that is readable when a thread waits; or -1. */
int context_breakers_fd(const struct context_breakers *breakers);

/* Opens breakers for the waiting threads. Backpressure continues their processes after that. */
void context_breakers_serve(struct context_breakers *breakers);

/* Handles a FORK or EXIT record. */
void context_breakers_handle_task(struct context_breakers *breakers,
				  const struct perf_disk_task *task);

/* How many tasks were created without a breaker: their events may be missing. */
uint64_t context_breakers_nr_unguarded(const struct context_breakers *breakers);

#endif
