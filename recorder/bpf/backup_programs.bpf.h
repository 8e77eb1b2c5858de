/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backups of programs that the kernel may skip. Where a task may be preempted in a program at a
 * tracepoint or a function, the kernel skips the program for the tasks that get there on the same
 * CPU meanwhile, and counts that: __bpf_trace_run() (kernel/trace/bpf_trace.c),
 * __bpf_prog_enter_recur() (kernel/bpf/trampoline.c). It runs the others that are there. So there
 * are three of each. An event is missed only if three tasks on its CPU are preempted in one each.
 *
 * recorder/loading/backup_programs.h says where the two are loaded, and counts what all skipped.
 */
#ifndef LEAKTOOLS_RECORDER_BACKUP_PROGRAMS_BPF_H
#define LEAKTOOLS_RECORDER_BACKUP_PROGRAMS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_tracing.h>

#define UNPACK(...) __VA_ARGS__

/*
 * Defines the programs @name, @name_2 and @name_3 at @place ("tp_btf/task_newtask"). Each calls
 * @function. When it runs again for the same event, the function must have no effect.
 * @parameters and @arguments are in parentheses.
 */
#define PROGRAM_WITH_BACKUPS(place, name, parameters, function, arguments)                         \
	SEC(place)                                                                                 \
	int BPF_PROG(name, UNPACK parameters)                                                      \
	{                                                                                          \
		return function arguments;                                                         \
	}                                                                                          \
	SEC(place)                                                                                 \
	int BPF_PROG(name##_2, UNPACK parameters)                                                  \
	{                                                                                          \
		return function arguments;                                                         \
	}                                                                                          \
	SEC(place)                                                                                 \
	int BPF_PROG(name##_3, UNPACK parameters)                                                  \
	{                                                                                          \
		return function arguments;                                                         \
	}

#endif
