/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakprobe list and leakprobe check: print the state of registered probes. */
#ifndef LEAKTOOLS_TOOLS_LEAKPROBE_REPORT_H
#define LEAKTOOLS_TOOLS_LEAKPROBE_REPORT_H

#include "tools/pid_list.h"

/* Prints a table of leakprobe's and leakrec's probes. Returns 0 or a negative errno, reported. */
int leakprobe_list(void);

/*
 * Prints for each group of leakprobe's probes whether it still watches the file at its path, and
 * for each allocator of the processes @pids whether it has probes. Returns the number of groups
 * and allocators that are not in order, or a negative errno, reported.
 */
int leakprobe_check(const struct pid_list *pids);

#endif
