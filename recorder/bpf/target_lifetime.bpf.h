/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the target table up to date when targets exit, and when other processes stop, continue and
 * debug them. For backpressure.bpf.c and bpf_recorder.bpf.c.
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_LIFETIME_BPF_H
#define LEAKTOOLS_RECORDER_TARGET_LIFETIME_BPF_H

#include "recorder/bpf/backup_programs.bpf.h"
#include "recorder/bpf/targets.bpf.h"

#define SIGCONT	      18
#define SIGTSTP	      20
#define SIGTTOU	      22
#define SI_KERNEL     0x80
#define SEND_SIG_PRIV 1 /* include/linux/sched/signal.h: in place of a siginfo */

/* include/linux/ptrace.h, include/trace/events/signal.h (Linux 6.18) */
#define PT_PTRACED	       0x1
#define PT_SEIZED	       0x10000
#define TRACE_SIGNAL_DELIVERED 0

/*
 * Removes the process before its id can be reused. Only the last thread finds no live thread left:
 * do_exit(), kernel/exit.c (5.15 to 6.18), decrements the count before this tracepoint.
 */
static inline __attribute__((always_inline)) int remove_at_exit(struct task_struct *task)
{
	if (BPF_CORE_READ(task, signal, live.counter) <= 0)
		target_table_remove(&shared, BPF_CORE_READ(task, tgid));
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/sched_process_exit", after_exit, (struct task_struct * task),
		     remove_at_exit, (task))

struct kernel_siginfo {
	int si_code;
} __attribute__((preserve_access_index));

/* Our stops come from the kernel. A process cannot send another a signal that looks like that. */
static bool is_from_kernel(struct kernel_siginfo *info)
{
	if ((unsigned long long)info <= SEND_SIG_PRIV)
		return (unsigned long long)info == SEND_SIG_PRIV;
	return BPF_CORE_READ(info, si_code) == SI_KERNEL;
}

/*
 * A debugger that has not seized its threads stops them one by one with SIGSTOP and suppresses the
 * signal: no SIGCONT follows. Attaching sends the first one (ptrace_attach(), kernel/ptrace.c).
 */
static bool is_debugged(struct task_struct *task)
{
	unsigned int ptrace = BPF_CORE_READ(task, ptrace);

	return (ptrace & PT_PTRACED) && !(ptrace & PT_SEIZED);
}

/*
 * Notes when another process stops or continues a target: backpressure must not undo that. The
 * target may handle SIGTSTP, SIGTTIN and SIGTTOU, so these are only noted to be looked for.
 */
static inline __attribute__((always_inline)) int note_signal(int sig, struct kernel_siginfo *info,
							     struct task_struct *task, int result)
{
	struct target *target;

	if (sig < SIGCONT || sig > SIGTTOU)
		return 0;
	target = find_target(BPF_CORE_READ(task, tgid));
	if (!target)
		return 0;
	if (sig >= SIGTSTP) {
		target->tty_stops = 1;
		return 0;
	}
	if (sig == SIGSTOP && is_debugged(task)) {
		target->debugged = 1;
		return 0;
	}
	/*
	 * A SIGCONT continues the process even if it is ignored. A SIGSTOP counts only if it was
	 * delivered, because a container's init may ignore it, and if it is not our own.
	 */
	if (sig == SIGSTOP && (is_from_kernel(info) || result != TRACE_SIGNAL_DELIVERED))
		return 0;
	target->job_stopped = sig == SIGSTOP;
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/signal_generate", signalled,
		     (int sig, struct kernel_siginfo *info, struct task_struct *task, int type,
		      int result),
		     note_signal, (sig, info, task, result))

#endif
