/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of recorded processes, as BPF programs see it, and stopping one: for backpressure.bpf.c
 * and bpf_recorder.bpf.c.
 */
#ifndef LEAKTOOLS_RECORDER_TARGETS_BPF_H
#define LEAKTOOLS_RECORDER_TARGETS_BPF_H

#include "recorder/target_table/target_search.h"

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

struct xol_area {
	unsigned long vaddr;
} __attribute__((preserve_access_index));

struct uprobes_state {
	struct xol_area *xol_area;
} __attribute__((preserve_access_index));

struct mm_struct {
	struct uprobes_state uprobes_state;
#if defined(__TARGET_ARCH_arm64)
	unsigned long task_size; /* where user addresses end */
#endif
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

typedef struct {
	int counter;
} atomic_t;

struct upid {
	int nr;
} __attribute__((preserve_access_index));

struct pid {
	struct upid numbers[1]; /* the first is that of the first namespace */
} __attribute__((preserve_access_index));

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
	struct tty_struct *tty;
	struct pid *pids[4];
	int leader; /* of a session */
	unsigned int flags;
	struct task_struct *group_exec_task;
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
	int pid;
	int tgid;
	unsigned int ptrace;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct task_struct *real_parent;
	struct perf_event_context *perf_event_ctxp;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	unsigned long long self_exec_id; /* changes with each exec */
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct target_table shared;

/* All processes hit the probes; with @in_cgroup only those in the cgroup are recorded. */
const volatile bool everywhere = false;
const volatile bool in_cgroup = false;

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(unsigned int));
	__uint(value_size, sizeof(unsigned int));
} recorded_cgroup SEC(".maps");

static __attribute__((unused)) struct target *find_target(unsigned int tgid)
{
	return target_table_find(&shared, tgid);
}

static __attribute__((noinline, unused)) struct target *add_target(unsigned int tgid)
{
	return target_table_add(&shared, tgid);
}

/* The current process if it is recorded, or NULL: other processes may hit the probe, too. */
static __attribute__((unused)) struct target *current_target(void)
{
	return find_target(bpf_get_current_pid_tgid() >> 32);
}

static bool is_left_out(void)
{
	struct target *target = find_target(bpf_get_current_pid_tgid() >> 32);

	return target && target->role >= TARGET_LEFT_OUT;
}

/* For @everywhere: leaves out @task, a new process, if the recorder has forked it. */
static __attribute__((unused)) void leave_out_own_child(struct task_struct *task)
{
	struct target *parent = find_target(bpf_get_current_pid_tgid() >> 32), *child;

	if (!parent || parent->role != TARGET_RECORDER)
		return;
	child = add_target(BPF_CORE_READ(task, tgid));
	if (child)
		child->role = TARGET_LEFT_OUT;
}

/* With @everywhere: true if the current process is recorded. */
static __attribute__((unused)) bool is_in_scope(void)
{
	return !is_left_out() &&
	       (!in_cgroup || bpf_current_task_under_cgroup(&recorded_cgroup, 0) == 1);
}

/* True if the current process is recorded, at a hook that all processes hit. */
static __attribute__((unused)) bool is_recorded(void)
{
	return everywhere ? is_in_scope() : current_target() != 0;
}

/* include/linux/pid_types.h */
#define PIDTYPE_OF_GROUP   2
#define PIDTYPE_OF_SESSION 3
#define MAX_ANCESTORS	   16

#define SIGNAL_UNKILLABLE  0x40 /* include/linux/sched/signal.h: the init of a PID namespace */

/*
 * True if @task may be a job of a shell, with a process group of its own: the shell would take a
 * stop for Ctrl-Z. Services lead a session, or have init as their parent.
 */
static inline __attribute__((always_inline)) bool is_job(struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);

	return !BPF_CORE_READ(task, signal, leader) && BPF_CORE_READ(parent, tgid) != TARGET_INIT &&
	       BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_GROUP]) !=
		       BPF_CORE_READ(parent, signal, pids[PIDTYPE_OF_GROUP]);
}

/*
 * True if @task must never be stopped: it is debugged or on a terminal. Where all processes are
 * recorded, the user has not named this one, so more are spared. (A container's init is spared only
 * then: it is often the daemon that the user named, or whose cgroup.)
 *
 * Inline: before Linux 6.13, each function on the way here takes 32 bytes or more of the 512 that
 * all have together.
 */
static inline __attribute__((always_inline)) bool is_exempt(struct task_struct *task)
{
	if (BPF_CORE_READ(task, tgid) <= TARGET_INIT || BPF_CORE_READ(task, ptrace) ||
	    BPF_CORE_READ(task, group_leader, ptrace))
		return true;
	if (everywhere)
		return BPF_CORE_READ(task, signal, tty) || is_job(task) ||
		       (!in_cgroup && BPF_CORE_READ(task, signal, flags) & SIGNAL_UNKILLABLE);
	if (!BPF_CORE_READ(task, signal, tty))
		return false;
	return is_job(task) || BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_SESSION],
					     numbers[0].nr) == shared.own_session;
}

/* The current process, if it may be stopped. */
static inline __attribute__((always_inline)) struct target *target_to_hold(void)
{
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct target *target = find_target(tgid);

	if ((!target && !everywhere) || (target && target->role != TARGET_RECORDED) ||
	    is_exempt((struct task_struct *)bpf_get_current_task()))
		return 0;
	return target ? target : add_target(tgid);
}

/* False while the watchdog could not end a stop, or not in time. */
static bool can_end_stops(void)
{
	if (shared.closed || shared.paused || shared.forbidden)
		return false;
	if ((long long)(bpf_ktime_get_ns() - shared.watchdog_ns) < (long long)WATCHDOG_LATE_NS)
		return true;
	shared.watchdog_was_late = 1;
	return false;
}

/* False while nothing may be stopped because a ring is full. */
static __attribute__((unused)) bool may_hold(void)
{
	return shared.limit_bytes && !shared.overdue && can_end_stops();
}

__attribute__((noinline)) int add_steps(unsigned int steps)
{
	struct target *target = add_target(bpf_get_current_pid_tgid() >> 32);

	if (target)
		__sync_fetch_and_add(&target->steps, steps);
	return 0;
}

/*
 * Counts the steps that a ring has been filled by since *@last_step for the current process, whose
 * record begins at @at. Another process may have filled the last of them; on average that is right.
 */
static __attribute__((unused)) void count_steps(unsigned long long at,
						unsigned long long *last_step)
{
	unsigned long long step, before = *last_step;

	if (!everywhere || !shared.limit_others_bytes)
		return;
	step = at >> shared.step_shift;
	/* Not if another program has run in between, and was faster. */
	if ((long long)(step - before) <= 0)
		return;
	*last_step = step;
	add_steps(step - before);
}

/*
 * True if the current process might get SIGHUP while it is stopped. The kernel hangs up on a
 * process group with a stopped member when it loses the last one whose parent is another group's in
 * the session (kill_orphaned_pgrp(), kernel/exit.c, Linux 6.18). The first process of a shell's job
 * that becomes a daemon is such a parent. A process with such a parent itself does not end while it
 * is stopped. The recorder, in its command's group, lives longer than the stop.
 */
static __attribute__((noinline)) bool may_be_hung_up(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pid *group = BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_GROUP]);
	struct pid *session = BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_SESSION]);

	if (group == session || BPF_CORE_READ(group, numbers[0].nr) == shared.own_group)
		return false;
	for (int i = 0; i < MAX_ANCESTORS; i++) {
		task = BPF_CORE_READ(task, real_parent);
		if (BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_GROUP]) != group)
			return i > 0 &&
			       BPF_CORE_READ(task, signal, pids[PIDTYPE_OF_SESSION]) == session;
	}
	return true;
}

/* False while nothing may be stopped for set-up work. */
static __attribute__((unused)) bool may_hold_for_set_up(void)
{
	return !shared.set_up_overdue && can_end_stops() && !may_be_hung_up();
}

/*
 * Stops the process before it returns to user space. A process that is stopped without a mark would
 * stay stopped. So the mark is set before the signal, in case the program ends here, and again
 * after it, in case the recorder took the first mark for that of an earlier stop. A mark from
 * before says nothing about when this stop began: the recorder may have continued the process
 * meanwhile.
 *
 * The signal goes to the thread, not to the process; it stops the whole process all the same. A
 * second signal to the process has no effect while the first is pending, that is, while the thread
 * that it went to is preempted on its way to user space. The next thread on that CPU would then run
 * for its whole time slice.
 *
 * Returns false if the signal could not be sent. Where a program cannot be preempted, an interrupt
 * sends it (a thread with PREEMPT_RT), and until then the CPU takes no other one: see
 * bpf_send_signal_common() (kernel/trace/bpf_trace.c, Linux 6.18). The mark stays: it may be that
 * of another thread's stop by now. To continue a process that was not stopped does no harm.
 */
static __attribute__((unused)) bool hold(struct target *target)
{
	bool is_sent;

	target->stopped_ns = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&target->stopped, 1);
	is_sent = bpf_send_signal_thread(SIGSTOP) == 0;
	target->stopped = 1;
	shared.any_stopped = 1;
	return is_sent;
}

/* The same, until set-up work is done. */
static __attribute__((unused)) bool hold_for_set_up(struct target *target)
{
	target->set_up = 1;
	return hold(target);
}

/* Stops the current process if it may be stopped because a ring holds @filled_bytes. */
__attribute__((noinline, unused)) int hold_for_ring(unsigned long long filled_bytes)
{
	struct target *target = may_hold() ? target_to_hold() : 0;

	if (target && (!everywhere || target_may_pause(&shared, target, filled_bytes)))
		hold(target);
	return 0;
}

#endif
