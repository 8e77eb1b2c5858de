/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the kernel may preempt a task inside of the kernel, that is, also inside of our programs
 * at functions (fentry). It then skips them for other tasks of that CPU: __bpf_prog_enter_recur()
 * (kernel/bpf/trampoline.c, Linux 6.1).
 */
#ifndef LEAKTOOLS_RECORDER_PREEMPTION_H
#define LEAKTOOLS_RECORDER_PREEMPTION_H

#include <stdbool.h>

/* True if this kernel does, or if that cannot be found out. */
bool kernel_is_preemptible(void);

/*
 * The same for a kernel with utsname.version @version. @models: the text of debugfs's sched/preempt
 * (kernel/sched/debug.c), or NULL if it cannot be read.
 */
bool preemption_is_possible(const char *version, const char *models);

#endif
