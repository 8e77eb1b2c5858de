/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/memory/process_memory.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/pidfd.h>

/* The fields of a sample, as in the kernel's Documentation/filesystems/proc.rst. */
struct memory_fields {
	const char *file;
	const char *rss;
	const char *anonymous;
	const char *swap;
};

/* Exact: the kernel walks the page tables, holding the mmap lock of the process. */
static const struct memory_fields rollup_fields = {"smaps_rollup", "Rss:", "Anonymous:", "Swap:"};
/* Cheap: counters, of which each CPU may hold back some pages. */
static const struct memory_fields status_fields = {"status", "VmRSS:", "RssAnon:", "VmSwap:"};

/* Finds the line that begins with @field; its value is in kB. */
static int find_field(const char *text, const char *field, uint64_t *ret_bytes)
{
	uint64_t kib;
	int err = proc_file_number(text, field, &kib);

	if (!err)
		*ret_bytes = kib * 1024;
	return err;
}

static int read_fields(int proc_fd, const struct memory_fields *fields, struct memory_sample *ret)
{
	_cleanup_free_ char *text = calloc(1, PROC_FILE_STATUS_SIZE);
	uint64_t swap_bytes = 0;

	if (!text)
		return -ENOMEM;
	int err = proc_file_read_at(proc_fd, fields->file, text, PROC_FILE_STATUS_SIZE);
	if (err)
		return err;
	/* Exiting processes and kernel threads have these files, but no memory fields. */
	if (find_field(text, fields->rss, &ret->rss_bytes) ||
	    find_field(text, fields->anonymous, &ret->heap_bytes))
		return -ESRCH;
	find_field(text, fields->swap, &swap_bytes);
	ret->heap_bytes += swap_bytes;
	return 0;
}

int process_memory_read(struct process_memory *process, struct memory_sample *ret)
{
	int err = -EACCES;

	ret->time_ns = clock_now_ns();
	if (!process->use_status) {
		err = read_fields(process->proc_fd, &rollup_fields, ret);
		if (!err && clock_now_ns() - ret->time_ns > process->read_ns_max) {
			diag_note("counting the pages of %s takes long; using the kernel's "
				  "counters instead, which lag by some pages",
				  process->name);
			process->use_status = true;
		}
	}
	/* smaps_rollup needs permission to trace the process, and Linux 4.14. */
	if (err == -EACCES || err == -EPERM || err == -ENOENT) {
		process->use_status = true;
		err = read_fields(process->proc_fd, &status_fields, ret);
	}
	/* The directory of an exited process has no files. */
	if (err == -ENOENT)
		err = -ESRCH;
	if (err && err != -ESRCH)
		diag_error("cannot read the memory of %s: %s", process->name, strerror(-err));
	return err;
}

static int open_failed(pid_t pid, int err)
{
	if (err == ENOENT || err == ESRCH)
		diag_error("there is no process %d", pid);
	else
		diag_error("cannot watch process %d: %s", pid, strerror(err));
	return -err;
}

/* Opens the directory in /proc and the pidfd, and reads the name. */
static int open_process(pid_t pid, struct process_memory *process)
{
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, pid, "");
	process->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->proc_fd < 0)
		return open_failed(pid, errno);
	process->pidfd = pidfd_open(pid, 0);
	if (process->pidfd < 0) {
		int err = errno;

		/* For a thread, pidfd_open(2) fails with EINVAL before Linux 6.9, since then with
		 * ENOENT. */
		if (err == EINVAL || err == ENOENT)
			diag_error("%d is a thread, not a process; give the PID of its process",
				   pid);
		else
			open_failed(pid, err);
		return -err;
	}
	/* If this works, the process has not exited before pidfd_open(): both are one process. */
	int err = proc_file_read_at(process->proc_fd, "comm", process->name, sizeof(process->name));
	if (err)
		return open_failed(pid, -err);
	process->name[strcspn(process->name, "\n")] = '\0';
	return 0;
}

int process_memory_open(pid_t pid, uint64_t read_ns_max, struct process_memory *ret)
{
	struct process_memory process = {.pidfd = -1, .proc_fd = -1, .read_ns_max = read_ns_max};
	struct memory_sample sample;

	int err = open_process(pid, &process);
	if (!err) {
		err = process_memory_read(&process, &sample);
		if (err == -ESRCH)
			diag_error("process %d (%s) has no memory of its own: it has exited or is "
				   "a kernel thread",
				   pid, process.name);
	}
	if (err) {
		process_memory_close(&process);
		return err;
	}
	*ret = process;
	return 0;
}

void process_memory_close(struct process_memory *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd);
	if (process->proc_fd >= 0)
		close(process->proc_fd);
	process->pidfd = process->proc_fd = -1;
}
