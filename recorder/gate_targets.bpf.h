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
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SIGSTOP 19

/* The kernel's, as far as it is read; libbpf finds the offsets in the running kernel's BTF. */
struct perf_event_context {
	int nr_events;
} __attribute__((preserve_access_index));

struct uprobes_state {
	struct xol_area *xol_area;
} __attribute__((preserve_access_index));

struct mm_struct {
	struct uprobes_state uprobes_state;
	unsigned long start_stack;
	unsigned long brk;
	unsigned long exec_vm; /* pages */
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

struct signal_struct {
	struct tty_struct *tty;
	struct pid *pids[4];
	int leader; /* of a session */
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
	unsigned int ptrace;
	struct signal_struct *signal;
	struct task_struct *real_parent;
	struct perf_event_context *perf_event_ctxp;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct gate_shared shared;

/* Probes are hit by all processes of the machine, of which those in a cgroup may be meant. */
const volatile bool everywhere = false;
const volatile bool in_cgroup = false;
const volatile unsigned long long cgroup_id = 0;

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(unsigned int));
	__uint(value_size, sizeof(unsigned int));
} recorded_cgroup SEC(".maps");

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
			target->job_stopped = target->role = target->has_mapped = 0;
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

static bool is_left_out(void)
{
	struct gate_target *target = find_target(bpf_get_current_pid_tgid() >> 32);

	return target && target->role == GATE_LEFT_OUT;
}

/* With @everywhere: true if the process that runs now is one of those that are meant. */
static __attribute__((unused)) bool is_in_scope(void)
{
	return !is_left_out() &&
	       (!in_cgroup || bpf_current_task_under_cgroup(&recorded_cgroup, 0) == 1);
}

#define MAX_CGROUP_DEPTH 32

/* The same, slower, for sleepable programs, which may not look into that map. */
static __attribute__((unused)) bool is_in_scope_sleepable(void)
{
	if (is_left_out())
		return false;
	for (int level = 0; in_cgroup && level < MAX_CGROUP_DEPTH; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == cgroup_id)
			return true;
	return !in_cgroup;
}

/* The same of what is hit by all processes in any case. */
static __attribute__((unused)) bool is_recorded(void)
{
	return everywhere ? is_in_scope() : current_target() != 0;
}

#define PIDTYPE_OF_GROUP 2 /* PIDTYPE_PGID, include/linux/pid_types.h */

/*
 * True if the process that runs now may be the job of a shell, which has a group of its own: the
 * shell would take a stop for Ctrl-Z. Services lead a session, or have init for a parent.
 */
static __attribute__((unused)) bool is_job(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task(), *parent;

	parent = BPF_CORE_READ(task, real_parent);
	return !BPF_CORE_READ(task, signal, leader) && BPF_CORE_READ(parent, tgid) != 1 &&
	       BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_GROUP]) !=
		       BPF_CORE_READ(parent, signal, pids[PIDTYPE_OF_GROUP]);
}

/*
 * The process that runs now, if it may be stopped. On a machine that is recorded as a whole, jobs
 * of shells may not.
 */
static __attribute__((unused)) struct gate_target *target_to_hold(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct gate_target *target;

	if (!everywhere)
		return current_target();
	if (BPF_CORE_READ(task, signal, tty) || is_job())
		return 0;
	target = find_target(tgid);
	if (!target)
		target = add_target(tgid);
	return target && target->role == GATE_RECORDED ? target : 0;
}

/* False while nobody is to be stopped. */
static __attribute__((unused)) bool may_hold(void)
{
	return !shared.closed && !shared.overdue && shared.limit_bytes;
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
