/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records the system calls of common/schema/syscall_schema.h: a sample at the entry, with the
 * arguments, and one at the return. All processes hit these tracepoints, also those that are not
 * recorded. Calls of 32-bit code and of the x32 interface have other numbers, and are left out. In
 * windows, only the number of transfers is of interest.
 */
#ifndef LEAKTOOLS_RECORDER_SYSCALLS_BPF_H
#define LEAKTOOLS_RECORDER_SYSCALLS_BPF_H

#include "recorder/bpf/filter.bpf.h"
#include "recorder/bpf/samples.bpf.h"

#define MAX_SYSCALL_ARGS 6

struct bpf_syscall syscalls[BPF_MAX_SYSCALLS];

/* In windows: the calls that read, write, receive and send. */
const volatile bool are_transfers[BPF_MAX_SYSCALLS] = {};

/* The row of a call of a recorded process, or NULL. */
ALWAYS_INLINE const struct bpf_syscall *recorded_syscall(long number)
{
	unsigned long index = number;
	const struct bpf_syscall *syscall;

	if (!recording || index >= BPF_MAX_SYSCALLS)
		return 0;
	syscall = &syscalls[index & (BPF_MAX_SYSCALLS - 1)];
	if (!syscall->enter.type || is_compat_syscall(bpf_get_current_task_btf()) || !is_recorded())
		return 0;
	return syscall;
}

ALWAYS_INLINE bool syscall_matches(const struct bpf_syscall *syscall,
				   const unsigned long long *args)
{
	unsigned long long size = 0, replaces = 0;

	if (!has_filter || syscall->size_arg < 0)
		return true;
#pragma unroll
	for (int i = 0; i < MAX_SYSCALL_ARGS; i++) {
		if (i == syscall->size_arg)
			size = args[i];
		if (i == syscall->replaces_arg)
			replaces = args[i] & syscall->replaces_bit;
	}
	return replaces || (size >= filter_min && size <= filter_max);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long number)
{
	const struct bpf_syscall *syscall = recorded_syscall(number);
	struct sample sample;

	if (!syscall)
		return 0;
	copy_syscall_args(sample.fields + 1, regs);
	if (!syscall_matches(syscall, sample.fields + 1))
		return 0;
	sample.caller = 0;
	sample.fields[0] = number;
	if (syscall->is_brk)
		sample.fields[2] =
			BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm, brk);
	record_here(&sample, &syscall->enter, 1 + MAX_SYSCALL_ARGS, regs);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
	const struct bpf_syscall *syscall = recorded_syscall(syscall_number(regs));
	unsigned long long args[MAX_SYSCALL_ARGS];
	struct sample sample;

	if (!syscall)
		return 0;
	copy_syscall_args(args, regs);
	if (!syscall_matches(syscall, args))
		return 0;
	keep_registers(&sample, regs);
	sample.caller = 0;
	sample.fields[0] = syscall_number(regs);
	sample.fields[1] = ret;
	/* Frame-pointer unwinding misses a frameless wrapper's caller. */
	sample.fields[2] = dump_bytes ? 0 : leave_wrapper(&sample.regs);
	sample.fields[3] = dump_bytes ? 0 : pending_function(PT_REGS_SP(regs));
	sample.fields[4] = 0;
	if (syscall->pair_arg)
		bpf_probe_read_user(&sample.fields[4], sizeof(sample.fields[4]),
				    (void *)args[(syscall->pair_arg - 1) & 3]);
	record(&sample, &syscall->exit, 5);
	return 0;
}

/*
 * Counts the transfers of recorded processes: how fast they work (recorder/windows/pace.h). The
 * recorder attaches it for some milliseconds around a window.
 */
SEC("tp_btf/sys_enter")
int BPF_PROG(count_transfer, struct pt_regs *regs, long number)
{
	unsigned long index = number;

	if (index < BPF_MAX_SYSCALLS && are_transfers[index & (BPF_MAX_SYSCALLS - 1)] &&
	    current_target())
		cpus[bpf_get_smp_processor_id() & (BACKPRESSURE_MAX_CPUS - 1)].transfers++;
	return 0;
}

#endif
