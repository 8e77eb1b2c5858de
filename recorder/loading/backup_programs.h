/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads the backups of programs that the kernel may skip (backup_programs.bpf.h), and counts what
 * it skipped.
 */
#ifndef LEAKTOOLS_RECORDER_BACKUP_PROGRAMS_H
#define LEAKTOOLS_RECORDER_BACKUP_PROGRAMS_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True if tasks may be preempted in a program at a tracepoint, as from Linux 7.0 on:
 * __do_trace_##name(), include/linux/tracepoint.h. A kernel shows it by another change of 7.0:
 * bpf_session_cookie() takes the context. Before, it has no argument
 * (kernel/trace/bpf_trace.c, 6.10 to 6.19).
 */
bool tracepoints_are_preemptible(void);

/*
 * Call it when it is decided which programs of @object are loaded. Has their backups loaded, too:
 * of those @at_tracepoints and @at_functions, if tasks may be preempted there.
 */
void backup_programs_choose(struct bpf_object *object, bool at_tracepoints, bool at_functions);

/* What a recording may lack if the kernel skips a program and all of its backups. */
enum skip_cost {
	SKIP_COSTS_CALLS,   /* a system call, at each event */
	SKIP_COSTS_FILES,   /* an allocator that a process has begun to use */
	SKIP_COSTS_SET_UP,  /* a process: a fork, an exec, the end of a thread or a process */
	SKIP_COSTS_STOPS,   /* that a target was stopped or continued, by another process */
	SKIP_COSTS_NOTHING, /* other programs make up for it, or no event is missing */
	SKIP_IS_UNKNOWN,
};
#define NR_SKIP_COSTS SKIP_COSTS_NOTHING

/* Of a program that is not a backup. */
enum skip_cost backup_programs_cost(const char *name);

/*
 * The number of events at which the kernel may have skipped a program of @object with this @cost,
 * and all of its backups. It has skipped no more. Programs that are not loaded do not count.
 */
uint64_t backup_programs_nr_skipped(const struct bpf_object *object, enum skip_cost cost);

#endif
