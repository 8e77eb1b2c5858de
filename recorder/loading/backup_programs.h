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

/*
 * The number of events at which the kernel may have skipped one of the @nr @programs of @object,
 * and all of its backups. It has skipped no more. Programs that are not loaded do not count.
 */
uint64_t backup_programs_nr_skipped(const struct bpf_object *object,
				    const struct bpf_program *const *programs, size_t nr);

#endif
