/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of recorded processes, as BPF programs see it, and stopping one: for gate.bpf.c and
 * probe_programs.bpf.c.
 */
#ifndef LEAKTOOLS_RECORDER_GATE_TARGETS_BPF_H
#define LEAKTOOLS_RECORDER_GATE_TARGETS_BPF_H

#include "gate_shared.h"

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SIGSTOP 19

/* The kernel's, as far as it is read; libbpf finds the offsets in the running kernel's BTF. */
struct perf_event_context {
	int nr_events;
} __attribute__((preserve_access_index));

struct mm_struct {
	unsigned long start_stack;
} __attribute__((preserve_access_index));

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
struct thread_info {
	unsigned int status;
} __attribute__((preserve_access_index));
#endif

struct task_struct {
#if defined(__TARGET_ARCH_x86)
	struct thread_info thread_info;
#endif
	int tgid;
	struct task_struct *real_parent;
	struct perf_event_context *perf_event_ctxp;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct gate_shared shared;

static struct gate_target *find_target(unsigned int tgid)
{
	for (int i = 0; i < GATE_MAX_PROBES; i++) {
		unsigned int slot = (gate_target_slot(tgid) + i) & (GATE_MAX_TARGETS - 1);

		if (shared.targets[slot].tgid == tgid)
			return &shared.targets[slot];
		if (shared.targets[slot].tgid == 0)
			break;
	}
	return 0;
}

static struct gate_target *add_target(unsigned int tgid)
{
	for (int i = 0; i < GATE_MAX_PROBES; i++) {
		struct gate_target *target =
			&shared.targets[(gate_target_slot(tgid) + i) & (GATE_MAX_TARGETS - 1)];
		unsigned long long old = target->tgid;

		if (old == tgid)
			return target;
		if (old <= GATE_REMOVED &&
		    __sync_val_compare_and_swap(&target->tgid, old, (unsigned long long)tgid) ==
			    old) {
			target->stopped = target->linked = target->forks = 0;
			target->job_stopped = 0;
			return target;
		}
	}
	return 0;
}

/* The recorded process that runs now, or NULL: the probe may be hit by others, too. */
static __attribute__((unused)) struct gate_target *current_target(void)
{
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct gate_target *target = find_target(tgid);

	if (target)
		return target;
	/* A child's events are inherited from its parent's. */
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	return find_target(BPF_CORE_READ(task, real_parent, tgid)) ? add_target(tgid) : 0;
}

/*
 * Stops the process before it returns to user space. One that is stopped without a mark stays
 * stopped: the mark is set before the signal, in case that nobody comes to the second, and after
 * it, in case that the recorder took the first for one of an earlier stop.
 *
 * The signal is this thread's, not the process's: of those, a second one is nobody's while the
 * first is pending, that is while the thread it went to is preempted on its way to user space, and
 * the next thread on that CPU would run on for its whole time slice. It stops the process all the
 * same.
 */
static void hold(struct gate_target *target)
{
	if (__sync_lock_test_and_set(&target->stopped, 1) == 0)
		target->stopped_ns = bpf_ktime_get_ns();
	bpf_send_signal_thread(SIGSTOP);
	target->stopped = 1;
	shared.any_stopped = 1;
}

#endif
