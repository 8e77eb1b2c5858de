/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the memory use of a process. Descriptors identify the process, so a reused PID is never
 * mistaken for it.
 */
#ifndef LEAKTOOLS_PLOT_PROCESS_MEMORY_H
#define LEAKTOOLS_PLOT_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_NAME_SIZE 17 /* TASK_COMM_LEN (include/linux/sched.h), and a NUL */

struct process_memory {
	int pidfd;	 /* readable once the process has exited */
	int proc_fd;	 /* its directory in /proc */
	bool use_status; /* smaps_rollup is not readable, or takes too long */
	uint64_t read_ns_max;
	char name[PROCESS_NAME_SIZE];
};

struct memory_sample {
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t rss_bytes; /* resident: libraries and files included */
	/*
	 * Private anonymous memory, resident or swapped out: the [heap] mapping, the blocks and
	 * arenas that malloc maps, and with them stacks and modified data of executables.
	 */
	uint64_t heap_bytes;
};

/*
 * Opens process @pid. If the kernel needs longer than @read_ns_max to count its pages exactly,
 * later reads use the kernel's approximate counters. Returns 0, or a negative errno after reporting
 * it.
 */
int process_memory_open(pid_t pid, uint64_t read_ns_max, struct process_memory *ret);

void process_memory_close(struct process_memory *process);

/*
 * Reads the current values. Returns 0; -ESRCH, unreported, if the process has exited; or another
 * negative errno after reporting it.
 */
int process_memory_read(struct process_memory *process, struct memory_sample *ret);

#endif
