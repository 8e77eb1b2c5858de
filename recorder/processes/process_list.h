/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of processes: all, or those of a cgroup. */
#ifndef LEAKTOOLS_RECORDER_PROCESS_LIST_H
#define LEAKTOOLS_RECORDER_PROCESS_LIST_H

#include <stddef.h>
#include <sys/types.h>

struct process_list {
	pid_t *pids;
	size_t nr;
};

/* Returns 0 or -ENOMEM. Release with process_list_deinit(). */
int process_list_add(struct process_list *list, pid_t pid);
void process_list_deinit(struct process_list *list);

/* Adds all live processes except kernel threads. Returns 0 or a negative errno, reported. */
int process_list_add_all(struct process_list *list);

/* Adds those in the cgroup with directory @fd and below. Returns 0 or -ENOMEM, reported. */
int process_list_add_cgroup(struct process_list *list, int fd);

#endif
