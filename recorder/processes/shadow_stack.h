/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds processes with a shadow stack (x86, Linux 6.6): a second stack with the return addresses
 * only, with which the processor compares each return. Breakpoints could end them.
 *
 * A breakpoint on a call: branch_emulate_op() in arch/x86/kernel/uprobes.c pushes the return
 * address to the normal stack only (Linux 6.12, 6.18; corrected in 7.2 by "x86/uprobes: Keep shadow
 * stack in sync for emulated CALLs"). A return probe: the return address that it replaces is not
 * replaced there (before 6.11: "x86/shstk: Make return uprobe work with shadow stack").
 */
#ifndef LEAKTOOLS_RECORDER_SHADOW_STACK_H
#define LEAKTOOLS_RECORDER_SHADOW_STACK_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns 0, or -EPERM, reported, if process @pid has one. */
int shadow_stack_check(pid_t pid);

/* True if @status, the text of /proc/PID/status, tells of one. */
bool shadow_stack_is_in(const char *status);

#endif
