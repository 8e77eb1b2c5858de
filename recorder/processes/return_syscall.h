/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a return probe could kill a target that filters its system calls.
 *
 * On x86-64, since Linux 6.11, a function with a return probe returns into the kernel by the system
 * call uretprobe, number 335 ("uprobe: Add uretprobe syscall to speed up return probe",
 * arch/x86/kernel/uprobes.c), which no filter of seccomp(2) knows. Filters let it pass since
 * "seccomp: passthrough uretprobe systemcall without filtering" (kernel/seccomp.c): Linux 6.12.14,
 * 6.13.3 and 6.14. Before, a filter may end the target, or fail the call, so that the target runs
 * on at a wrong place. Strict mode ends it up to 7.3: only filters were taught to let it pass. The
 * system call uprobe (Linux 6.18) passes filters wherever it exists.
 */
#ifndef LEAKTOOLS_RECORDER_RETURN_SYSCALL_H
#define LEAKTOOLS_RECORDER_RETURN_SYSCALL_H

#include <stdbool.h>
#include <sys/types.h>

enum return_syscall {
	RETURN_TRAPS,	 /* no such system call: a return probe is a trap, which no filter sees */
	RETURN_PASSES,	 /* filters let it pass */
	RETURN_FILTERED, /* they do not */
};

/*
 * Tries it in children of this process, because distributions correct errors in kernels of any
 * number. If this process has a filter itself, the kernel's release decides.
 */
enum return_syscall return_syscall_find(void);

/* What the kernel of @release, such as "6.12.9-amd64", does; in case of doubt RETURN_FILTERED. */
enum return_syscall return_syscall_of_release(const char *release);

/* True if a return probe could end a thread of process @pid. */
bool return_syscall_kills(enum return_syscall kind, pid_t pid);

#endif
