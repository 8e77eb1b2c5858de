/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc/PID/stat says about a process: whether it runs, and which one of that number it is. */
#ifndef LEAKTOOLS_COMMON_PROCESS_STATUS_H
#define LEAKTOOLS_COMMON_PROCESS_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_status {
	char state; /* as in proc(5): 'R', 'S', 'Z'... */
	pid_t parent, group, session;
	uint64_t terminal; /* its number; 0: there is none */
	bool kernel_thread;
	uint64_t nr_threads; /* the first one included, though it may have ended before others */
	uint64_t start_time_ticks; /* since boot: tells two processes of one number apart */
};

/* Parses the text of /proc/PID/stat. Returns 0, or -EINVAL. */
int process_status_parse(const char *text, struct process_status *ret);

/* Returns 0, -ESRCH if there is no such process, or another negative errno; reports nothing. */
int process_status_read(pid_t pid, struct process_status *ret);

/*
 * The process that @tid is a thread of: @tid itself, if it is the first. Returns a negative errno
 * where that cannot be read.
 */
pid_t process_status_of_thread(pid_t tid);

/* Who traces the process, 0: nobody; or a negative errno. Safe in signal handlers. */
pid_t process_status_tracer(pid_t pid);

/* True if the process has ended, though its parent may not have waited for it yet. */
static inline bool process_status_is_dead(const struct process_status *status)
{
	return (status->state == 'Z' || status->state == 'X') && status->nr_threads <= 1;
}

#endif
