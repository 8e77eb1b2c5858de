/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds allocators and plans their probes: in the files that a process has mapped, and in an ELF
 * file or the libc that it uses.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_PLAN_H
#define LEAKTOOLS_PROBES_ALLOCATOR_PLAN_H

#include "probes/plan/probe_set.h"

struct mapped_file;

/*
 * Plans the probes for the allocators that process @pid has mapped: its libc, or its executable if
 * that is statically linked. @operators sets with_operators of @ret. Returns 0, or -ESRCH, -EACCES,
 * -ENODATA (no allocator found) or another negative errno, reported. Release @ret with
 * probe_set_deinit().
 */
int allocator_plan_pid(struct probe_set *ret, pid_t pid, bool operators);

/*
 * Returns -ENOEXEC, reported, if process @pid runs a program that cannot be recorded: one of 32
 * bits or of another architecture. Returns 0 also if that cannot be read.
 */
int allocator_plan_check_program(pid_t pid);

/* The same as allocator_plan_pid() for the ELF file at @path. */
int allocator_plan_file(struct probe_set *ret, const char *path, bool operators);

/*
 * Appends to @set the probes for a file that a process has mapped, if it holds an allocator or USDT
 * probes. Returns 0 or a negative errno, reported.
 */
int allocator_plan_mapped(struct probe_set *set, const struct mapped_file *file);

/*
 * Returns true if process @pid has mapped an allocator; reports nothing. *@ret_has_libc: a C
 * library is among them. Programs map no other one while they start.
 */
bool allocator_is_mapped(pid_t pid, bool *ret_has_libc);

#endif
