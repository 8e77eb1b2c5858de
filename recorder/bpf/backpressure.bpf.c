/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backpressure's programs. They run at each hit of a probe, before the sample is written, and stop
 * the process if the ring of its CPU may be past the limit. The process stops before it returns to
 * user space, however late the recorder is scheduled.
 */
#include "recorder/bpf/backpressure_shared.h"
#include "recorder/bpf/context_breakers.bpf.h"
#include "recorder/bpf/target_lifetime.bpf.h"
#include "recorder/bpf/task_stack.bpf.h"

/* Upper bounds of a record, with and without a stack, and of a mark's. */
const volatile unsigned int plain_bytes = 0;
const volatile unsigned int stack_bytes = 0;
const volatile unsigned int mark_bytes = 0;

struct backpressure_cpu cpus[BACKPRESSURE_MAX_CPUS];

static int backpressure(unsigned int bytes)
{
	struct backpressure_cpu *cpu =
		&cpus[bpf_get_smp_processor_id() & (BACKPRESSURE_MAX_CPUS - 1)];
	unsigned long long produced, filled;

	/* The process is not recorded. With 0 the kernel writes no sample. */
	if (everywhere && !is_in_scope())
		return 0;
	if (shared.closed || !shared.limit_bytes || (!everywhere && !current_target()))
		return 1;
	produced = __sync_fetch_and_add(&cpu->produced, bytes);
	count_steps(produced, &cpu->step);
	filled = produced + bytes - cpu->consumed;
	if ((long long)filled > (long long)shared.limit_bytes)
		hold_for_ring(filled);
	return 1;
}

SEC("kprobe")
int backpressure_plain(void *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	return backpressure(plain_bytes);
}

SEC("kprobe")
int backpressure_stack(void *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	return backpressure(stack_bytes);
}

SEC("kprobe")
int backpressure_mark(void *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	return backpressure(mark_bytes);
}

/* The same at system calls, whose events accept only programs of this type. */
SEC("tracepoint")
int backpressure_syscall_plain(void *context)
{
	return backpressure(plain_bytes);
}

SEC("tracepoint")
int backpressure_syscall_stack(void *context)
{
	return backpressure(stack_bytes);
}

/* A child inherits its parent's events, so it is recorded, too. */
static int note_fork(struct task_struct *task, unsigned long clone_flags)
{
	if (everywhere && !(clone_flags & CLONE_THREAD))
		leave_out_own_child(task);
	if (!everywhere && !shared.closed && !(clone_flags & CLONE_THREAD) && current_target())
		add_target(BPF_CORE_READ(task, tgid));
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/task_newtask", after_fork,
		     (struct task_struct * task, unsigned long clone_flags), note_fork,
		     (task, clone_flags))

char LICENSE[] SEC("license") = "GPL";
