/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_namespace.h"

#include "common/proc/living_thread.h"
#include "common/proc/process_status.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_stat.h"
#include "common/scope.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inode of the initial PID namespace: PROC_PID_INIT_INO, include/linux/proc_ns.h (6.1). */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

void process_namespace_read(pid_t pid, struct process_namespace *ret)
{
	struct process_status status;
	char link[PROC_FILE_PATH_SIZE];
	ssize_t len;

	ret->own_pid = process_status_read(pid, &status) ? pid : status.own_pid;
	proc_file_path(link, living_thread(pid), "root");
	len = readlink(link, ret->root, sizeof(ret->root) - 1);
	ret->root[len > 0 ? len : 0] = '\0';
	if (strcmp(ret->root, "/") == 0)
		ret->root[0] = '\0';
}

const char *process_namespace_path(const struct process_namespace *namespace, const char *path)
{
	size_t len = strlen(namespace->root);

	return strncmp(path, namespace->root, len) == 0 && path[len] == '/' ? path + len : path;
}

/* Returns 0 if it cannot be read. */
static ino_t read_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

bool process_namespace_is_initial(void)
{
	return read_inode("/proc/self/ns/pid") == INITIAL_PID_NAMESPACE;
}

uint32_t process_namespace_inode(void)
{
	/* An unsigned int: struct ns_common, include/linux/ns_common.h (6.1). */
	uint32_t inode = (uint32_t)read_inode("/proc/self/ns/pid");

	return inode == INITIAL_PID_NAMESPACE ? 0 : inode;
}

bool process_namespace_may_have(uint32_t inode, pid_t own_pid)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	const struct dirent *entry;

	if (!dir)
		return true;
	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		char link[PROC_FILE_PATH_SIZE];
		struct process_status status;
		struct process_stat stat;
		ino_t found;

		if (pid <= 0 || process_status_read(pid, &status) || status.own_pid != own_pid ||
		    process_stat_read(pid, &stat) || process_stat_is_dead(&stat))
			continue;
		proc_file_path(link, pid, "ns/pid");
		found = read_inode(link);
		/* One that may not be asked is in a container if it has another id there. */
		if (found == inode || (!found && pid != own_pid))
			return true;
	}
	return false;
}

bool process_namespace_format_name(pid_t pid, char to[static PROCESS_NAME_MAX])
{
	struct process_status status;
	bool is_contained = process_status_read(pid, &status) == 0 && status.own_pid != pid;

	if (is_contained)
		snprintf(to, PROCESS_NAME_MAX, "process %d (%d in its container)", (int)pid,
			 (int)status.own_pid);
	else
		snprintf(to, PROCESS_NAME_MAX, "process %d", (int)pid);
	return is_contained;
}
