/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a process in a container sees itself: its id in its own PID namespace, and paths below its
 * own root. /proc shows ids and paths as the reader of /proc sees them.
 */
#ifndef LEAKTOOLS_COMMON_PROCESS_NAMESPACE_H
#define LEAKTOOLS_COMMON_PROCESS_NAMESPACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_namespace {
	pid_t own_pid;	     /* in the innermost of its PID namespaces */
	char root[PATH_MAX]; /* seen from here; "" if it is "/" or cannot be read */
};

/* What cannot be read is taken to be as this process sees it. */
void process_namespace_read(pid_t pid, struct process_namespace *ret);

/* Turns @path, seen from here, into the path that the process sees: returns a part of @path. */
const char *process_namespace_path(const struct process_namespace *namespace, const char *path);

/* True if this process is in the machine's initial PID namespace, so in no container. */
bool process_namespace_is_initial(void);

/* The inode of this process's PID namespace; 0 if it is the initial one, or cannot be read. */
uint32_t process_namespace_inode(void);

/*
 * False if no process lives that has the id @own_pid in the PID namespace with @inode, as seen from
 * the initial one. True also if that cannot be known.
 */
bool process_namespace_may_have(uint32_t inode, pid_t own_pid);

#define PROCESS_NAME_MAX 64

/*
 * Writes "process 9839" and returns false, or "process 9839 (12 in its container)" and returns
 * true.
 */
bool process_namespace_format_name(pid_t pid, char to[static PROCESS_NAME_MAX]);

#endif
