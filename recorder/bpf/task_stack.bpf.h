/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the stack of each program at a uprobe on the kernel stack of its task.
 *
 * Such a program can be preempted between any two of its instructions, and another task of that CPU
 * may then run the same program: uprobe_prog_run() (kernel/trace/bpf_trace.c) and
 * bpf_prog_run_array_uprobe() (include/linux/bpf.h) hold rcu_read_lock() and migrate_disable(), and
 * nothing counts recursion (Linux 6.1 to 7.3). Nevertheless, from Linux 6.13 on, and in 6.12's
 * stable series, the JIT may place the stack of a program of type kprobe into memory that exists
 * once for each CPU, a "private stack". Two tasks then overwrite each other's variables: wrong
 * records, then a wild pointer in the kernel.
 *
 * A program that contains a tail call, reachable or not, never gets a private stack:
 * check_max_stack_depth() in kernel/bpf/verifier.c (Linux 6.12.107 and 7.3). The recorder reads the
 * machine code to see whether this held (private_stack.h).
 */
#ifndef LEAKTOOLS_RECORDER_TASK_STACK_BPF_H
#define LEAKTOOLS_RECORDER_TASK_STACK_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

/*
 * These maps stay empty. Programs that share one must be attached in the same way
 * (__bpf_prog_map_compatible(), kernel/bpf/core.c, Linux 6.18).
 */
struct no_programs {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(unsigned int));
	__uint(value_size, sizeof(unsigned int));
};

struct no_programs at_sessions SEC(".maps"), at_links SEC(".maps"), at_events SEC(".maps");

/* A constant for the verifier, which removes the tail call after it has noted it. */
const volatile bool makes_tail_calls = false;

/* Must be first in each program at a uprobe. */
#define KEEP_TASK_STACK(context, map)                                                              \
	do {                                                                                       \
		if (makes_tail_calls)                                                              \
			bpf_tail_call(context, &map, 0);                                           \
	} while (0)

#endif
