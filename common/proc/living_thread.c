/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/living_thread.h"

#include "common/broker/broker.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_stat.h"
#include "common/scope.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* All numbers are 0 if there is no memory: proc_pid_statm(), fs/proc/array.c (6.1 to 6.18). */
static bool has_memory(int proc_fd, pid_t tid)
{
	char name[PROC_FILE_PATH_SIZE], text[8];

	snprintf(name, sizeof(name), "task/%d/statm", (int)tid);
	return proc_file_read_at(proc_fd, name, text, sizeof(text)) == 0 && text[0] != '0';
}

bool living_thread_has_memory(pid_t tid)
{
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, tid, "");
	_cleanup_close_ int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return proc_fd >= 0 && has_memory(proc_fd, tid);
}

/* A thread that begins to end is marked before it loses its memory: do_exit(), kernel/exit.c. */
bool living_thread_is_ending(pid_t tid)
{
	struct process_stat status;

	return process_stat_read(tid, &status) != 0 || status.is_ending;
}

static size_t living_threads_at(int proc_fd, bool lasting, pid_t *ret, size_t max)
{
	_cleanup_close_ int task = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* opendir() allocates, which a signal handler must not. */
	char entries[1024] __attribute__((aligned(8)));
	size_t nr = 0;
	ssize_t size;

	while (task >= 0 && (size = getdents64(task, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
			pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

			if (tid > 0 && has_memory(proc_fd, tid) &&
			    !(lasting && living_thread_is_ending(tid)))
				ret[nr++] = tid;
			if (nr == max)
				return nr;
			at += entry->d_reclen;
		}
	return nr;
}

pid_t living_thread_at(int proc_fd)
{
	pid_t tid;

	return living_threads_at(proc_fd, false, &tid, 1) ? tid : 0;
}

static size_t living_threads(pid_t pid, bool lasting, pid_t *ret, size_t max)
{
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, pid, "");
	_cleanup_close_ int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return proc_fd < 0 ? 0 : living_threads_at(proc_fd, lasting, ret, max);
}

size_t living_threads_lasting(pid_t pid, pid_t *ret, size_t max)
{
	return living_threads(pid, true, ret, max);
}

pid_t living_thread(pid_t pid)
{
	const struct broker_request request = {BROKER_FIND_THREAD, .number = pid, .fd = -1};
	pid_t tid;
	int fd;

	if (!broker_is_used())
		return living_threads(pid, false, &tid, 1) ? tid : pid;
	tid = broker_ask(&request, &fd);
	return tid > 0 ? tid : pid;
}
