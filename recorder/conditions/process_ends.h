/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a recorded process was ended by a signal. The kernel tells that of a process whose parent
 * has not waited for it yet, and from Linux 6.15 on also later. Before that a parent may be faster:
 * of a process that was recorded from the beginning it is then assumed, so that nothing is missed.
 */
#ifndef LEAKTOOLS_RECORDER_PROCESS_ENDS_H
#define LEAKTOOLS_RECORDER_PROCESS_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Others are not watched. */
#define PROCESS_ENDS_MAX 256

struct process_end {
	int pid_fd, proc_fd;
	bool is_forked; /* while leakrec records */
};

/* Zero it before use. */
struct process_ends {
	struct process_end list[PROCESS_ENDS_MAX];
	size_t nr;
	bool left_out; /* there were too many */
};

void process_ends_deinit(struct process_ends *ends);

/* A process to watch. It is left out if there are too many, or if it is gone. */
void process_ends_add(struct process_ends *ends, pid_t pid, bool is_forked);

/* The kernel's word of how a process ended, if it is not known; its low 7 bits are the signal. */
#define PROCESS_ENDS_UNKNOWN (-1)

/*
 * Forgets the processes that have ended. Returns the signal of the first one that was ended by one;
 * PROCESS_ENDS_UNKNOWN if that is assumed; or 0: there is none. Call it again until it returns 0.
 */
int process_ends_check(struct process_ends *ends);

/* When the last threads of all of them have ended: waits for the processes, at most @timeout_ms. */
void process_ends_wait(const struct process_ends *ends, int timeout_ms);

#endif
