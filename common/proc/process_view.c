/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_view.h"

#include "common/scope.h"

#include <sys/stat.h>

/* The inode of the first PID namespace: PROC_PID_INIT_INO, include/linux/proc_ns.h. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

/* The last number of the line NSpid is that of the innermost namespace (proc(5)). */
static pid_t read_own_pid(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[32], line[1024];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0 && last)
			return (pid_t)strtol(last, NULL, 10);
	}
	return 0;
}

void process_view_read(pid_t pid, struct process_view *ret)
{
	char link[32];
	ssize_t len;

	ret->own_pid = read_own_pid(pid);
	if (ret->own_pid <= 0)
		ret->own_pid = pid;
	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	len = readlink(link, ret->root, sizeof(ret->root) - 1);
	ret->root[len > 0 ? len : 0] = '\0';
	if (strcmp(ret->root, "/") == 0)
		ret->root[0] = '\0';
}

const char *process_view_path(const struct process_view *view, const char *path)
{
	size_t len = strlen(view->root);

	return strncmp(path, view->root, len) == 0 && path[len] == '/' ? path + len : path;
}

bool process_view_is_first(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE;
}

bool process_view_format_name(pid_t pid, char to[static PROCESS_NAME_MAX])
{
	pid_t own_pid = read_own_pid(pid);
	bool is_contained = own_pid > 0 && own_pid != pid;

	if (is_contained)
		snprintf(to, PROCESS_NAME_MAX, "process %d (%d in its container)", (int)pid,
			 (int)own_pid);
	else
		snprintf(to, PROCESS_NAME_MAX, "process %d", (int)pid);
	return is_contained;
}
