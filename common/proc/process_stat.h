/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc/PID/stat says about a process or thread: whether it runs, and which of the processes
 * that have had its id it is.
 */
#ifndef LEAKTOOLS_COMMON_PROCESS_STAT_H
#define LEAKTOOLS_COMMON_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
	char state; /* as in proc(5): 'R', 'S', 'Z'... */
	pid_t parent, group, session;
	uint64_t terminal; /* its device number; 0: none */
	bool kernel_thread;
	bool is_ending;		   /* the thread of that id has begun to exit */
	uint64_t nr_threads;	   /* includes the first one, even if it has ended before others */
	uint64_t start_time_ticks; /* since boot: with the id, it names one process */
};

/* Parses the text of /proc/PID/stat. Returns 0, or -EINVAL. */
int process_stat_parse(const char *text, struct process_stat *ret);

/* Returns 0, -ESRCH if there is no such process, or another negative errno; reports nothing. */
int process_stat_read(pid_t pid, struct process_stat *ret);

/* True if the process has ended, though its parent may not have waited for it yet. */
static inline bool process_stat_is_dead(const struct process_stat *status)
{
	return (status->state == 'Z' || status->state == 'X') && status->nr_threads <= 1;
}

#endif
