/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the breakpoints of linked processes whose first thread ends before the others. The kernel
 * compares the memory of that thread, which then has none, to decide where a link's breakpoints
 * belong: uprobe_multi_link_filter(), kernel/trace/bpf_trace.c (Linux 6.6 to 6.18). They stay, but
 * the next tracer that removes its probe from the same place would take them along. Events such as
 * those for children (fork_follow.h) prevent that. The link then records as before.
 *
 * The same happens when a carrier ends (carriers.bpf.h).
 */
#ifndef LEAKTOOLS_RECORDER_FIRST_THREAD_BPF_H
#define LEAKTOOLS_RECORDER_FIRST_THREAD_BPF_H

#include "recorder/bpf/backup_programs.bpf.h"
#include "recorder/bpf/targets.bpf.h"

#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */
#define ITER_PROC_THREADS 2 /* BPF_TASK_ITER_PROC_THREADS, kernel/bpf/task_iter.c (Linux 6.18) */

/* Linux 6.7; used where the kernel has bpf_send_signal_task(). */
struct bpf_iter_task {
	__u64 opaque[3];
} __attribute__((aligned(8)));
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, unsigned int flags)
	__attribute__((section(".ksyms"), weak));
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it)
	__attribute__((section(".ksyms"), weak));
extern void bpf_iter_task_destroy(struct bpf_iter_task *it)
	__attribute__((section(".ksyms"), weak));
extern struct task_struct *bpf_task_acquire(struct task_struct *task)
	__attribute__((section(".ksyms"), weak));
extern void bpf_task_release(struct task_struct *task) __attribute__((section(".ksyms"), weak));

/*
 * True if other threads of @task, which ends, live on: the process neither ends nor execs.
 * @counted: 1 if the task itself still counts as living, else 0.
 */
ALWAYS_INLINE bool others_live_on(struct task_struct *task, int counted)
{
	return BPF_CORE_READ(task, signal, live.counter) > counted &&
	       !(BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT) &&
	       !BPF_CORE_READ(task, signal, group_exec_task);
}

/*
 * Stops the process of @task, which ends and so takes no signal any more. Another thread takes it.
 * Returns false if that is not possible.
 */
ALWAYS_INLINE bool hold_others(struct target *target, struct task_struct *task)
{
	int tgid = BPF_CORE_READ(task, tgid);
	struct task_struct *thread;
	struct bpf_iter_task it;
	bool is_held = false;

	if (!can_signal_tasks)
		return false;
	target->stopped_ns = bpf_ktime_get_ns();
	bpf_iter_task_new(&it, task, ITER_PROC_THREADS);
	while (!is_held && (thread = bpf_iter_task_next(&it))) {
		/* With another flag, these would be the threads of all processes. */
		if (BPF_CORE_READ(thread, tgid) != tgid || !(thread = bpf_task_acquire(thread)))
			continue;
		/* It fails if this thread ends, too. */
		is_held = bpf_send_signal_task(thread, SIGSTOP, PIDTYPE_TGID, 0) == 0;
		bpf_task_release(thread);
	}
	bpf_iter_task_destroy(&it);
	if (is_held)
		target->set_up = target->stopped = 1;
	return is_held;
}

/* True if the links of @target put breakpoints where the memory of @tid is, and nothing else does.
 */
ALWAYS_INLINE bool has_links_by(const struct target *target, unsigned int tid)
{
	return tid == target->tgid && target->linked && target->forks == TARGET_FORKS_UNSEEN;
}

/* Has events opened for a linked process whose first thread ends, and stops it until then. */
ALWAYS_INLINE int note_end_of_thread(struct task_struct *task)
{
	unsigned long long id = bpf_get_current_pid_tgid();
	struct target *target;
	bool was_carrier;

	/* In windows, links are short-lived. */
	if (in_windows || shared.closed)
		return 0;
	target = find_target(id >> 32);
	if (!target)
		return 0;
	was_carrier = remove_carrier(target, id);
	if (!(was_carrier || has_links_by(target, id)) || !others_live_on(task, 0))
		return 0;
	target->forks = TARGET_FORKS_WANTED;
	/* Events that are wanted by now are opened before the recording begins. */
	if (recording && (was_carrier ? !has_carrier(target)
				      : !(may_hold_fork(target) && hold_others(target, task))))
		shared.missed = 1;
	shared.any_stopped = 1;
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/sched_process_exit", after_first_thread, (struct task_struct * task),
		     note_end_of_thread, (task))

/*
 * Without links: notices the end of a carrier before exit_mm() wakes those who join the thread
 * (do_exit(), kernel/exit.c). So who creates a thread after that finds that a carrier is missing.
 * At its return exit_signals() (kernel/signal.c, Linux 6.1) has set PF_EXITING. The recorder notes
 * a carrier and then looks at that flag, so no carrier ends unseen. From Linux 6.16 on, the
 * tracepoint is as early. This is for kernels before 6.13.
 */
ALWAYS_INLINE int note_end_of_carrier(struct task_struct *task)
{
	struct target *target = shared.closed ? 0 : current_target();

	if (!target || !remove_carrier(target, bpf_get_current_pid_tgid()) ||
	    !others_live_on(task, 1))
		return 0;
	target->forks = TARGET_FORKS_WANTED;
	/* Without a carrier, the others hit breakpoints in vain. */
	if (recording && !has_carrier(target))
		shared.missed = 1;
	shared.any_stopped = 1;
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("fexit/exit_signals", carrier_ends, (struct task_struct * task),
		     note_end_of_carrier, (task))

#endif
