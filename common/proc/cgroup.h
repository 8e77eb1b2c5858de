/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups (version 2): the processes of a service or a container. */
#ifndef LEAKTOOLS_COMMON_CGROUP_H
#define LEAKTOOLS_COMMON_CGROUP_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Opens the cgroup at @path: its directory, or its path in the hierarchy as /proc/PID/cgroup shows
 * it ("/system.slice/cron.service"). Returns a descriptor, or a negative errno, reported.
 */
int cgroup_open(const char *path);

/* Opens the root of the hierarchy. @path is for messages. Returns the same. */
int cgroup_open_root(const char *path);

/* Opens the cgroup that @pid is in. Returns a descriptor or a negative errno; reports nothing. */
int cgroup_open_of(pid_t pid);

/* The lowest memory limit of the cgroups that this process is in; UINT64_MAX: there is none. */
uint64_t cgroup_memory_limit(void);

/*
 * How much more memory this process can take before one of these cgroups reaches its limit, or
 * memory.high; UINT64_MAX: there is none.
 */
uint64_t cgroup_memory_left(void);

#endif
