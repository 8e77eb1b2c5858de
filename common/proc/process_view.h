/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a process in a container sees itself: its number in its own PID namespace, and paths from its
 * own root. /proc shows both as whoever reads it sees them.
 */
#ifndef LEAKTOOLS_COMMON_PROCESS_VIEW_H
#define LEAKTOOLS_COMMON_PROCESS_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_view {
	pid_t own_pid;	     /* in the innermost of its PID namespaces */
	char root[PATH_MAX]; /* as this process sees it; "" where it is "/", or cannot be read */
};

/* What cannot be read is as this process sees it. */
void process_view_read(pid_t pid, struct process_view *ret);

/* The part of @path, which leads there from this process's root, that leads there from its own. */
const char *process_view_path(const struct process_view *view, const char *path);

/* True if this process is in no container: it has the first PID namespace of the machine. */
bool process_view_is_first(void);

#define PROCESS_NAME_MAX 64

/* "process 9839"; or "process 9839 (12 in its container)", and true. */
bool process_view_format_name(pid_t pid, char to[static PROCESS_NAME_MAX]);

#endif
