/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/process_list.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/proc/process_stat.h"

#include <errno.h>
#include <fcntl.h>

#define MAX_DEPTH 64 /* of cgroups */

int process_list_add(struct process_list *list, pid_t pid)
{
	/* Grow by doubling, whenever the number is a power of two. */
	if ((list->nr & (list->nr - 1)) == 0) {
		pid_t *grown =
			reallocarray(list->pids, list->nr ? list->nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->pids = grown;
	}
	list->pids[list->nr++] = pid;
	return 0;
}

void process_list_deinit(struct process_list *list)
{
	free(list->pids);
	*list = (struct process_list){0};
}

int process_list_add_all(struct process_list *list)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (dir && !err && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct process_stat status;

		if (pid <= 0 || process_stat_read(pid, &status) || status.kernel_thread ||
		    process_stat_is_dead(&status))
			continue;
		err = process_list_add(list, pid);
	}
	if (err)
		diag_error("cannot list the processes: %s", strerror(-err));
	return err;
}

/* A removed cgroup has no processes, and a threaded one does not show them: no error. */
static int add_own(struct process_list *list, int dir_fd)
{
	_cleanup_fclose_ FILE *f = NULL;
	int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, err = 0;

	if (fd < 0)
		return 0;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	/* A process of another PID namespace shows as 0. */
	while (!err && fscanf(f, "%d", &pid) == 1)
		if (pid > 0)
			err = process_list_add(list, pid);
	return err;
}

static int add_with_below(struct process_list *list, int dir_fd, int depth)
{
	_cleanup_closedir_ DIR *dir = NULL;
	int err = add_own(list, dir_fd), copy;
	struct dirent *entry;

	copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir && copy >= 0)
		close(copy);
	while (dir && !err && depth < MAX_DEPTH && (entry = readdir(dir))) {
		_cleanup_close_ int fd = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		fd = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			err = add_with_below(list, fd, depth + 1);
	}
	return err;
}

int process_list_add_cgroup(struct process_list *list, int fd)
{
	int err = add_with_below(list, fd, 0);

	if (err)
		diag_error("cannot list the cgroup's processes: %s", strerror(-err));
	return err;
}
