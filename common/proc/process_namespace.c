/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_namespace.h"

#include "common/proc/living_thread.h"
#include "common/proc/process_status.h"
#include "common/proc/proc_file.h"

#include <stdio.h>
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

bool process_namespace_is_initial(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INITIAL_PID_NAMESPACE;
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
