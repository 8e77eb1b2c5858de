/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/analysis/analyst.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/elf/own_mounts.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

/* Exit statuses of the child. */
enum { ANALYST_DONE, ANALYST_FAILED, ANALYST_AGAIN };

/* Of a list from the child: more than a heap can have blocks. */
#define MAX_LOST (1u << 30)

static int write_lost(const struct scan *scan, int fd)
{
	struct lost_before buffer[512];
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < scan->lost.nr && !err; i++) {
		struct heap_block_view view;

		heap_block_view(&scan->heap, scan->lost.blocks[i].block, &view);
		buffer[nr++] = (struct lost_before){view.address, view.size_bytes};
		if (nr < sizeof(buffer) / sizeof(buffer[0]) && i + 1 < scan->lost.nr)
			continue;
		err = output_write_all(fd, buffer, nr * sizeof(buffer[0]));
		nr = 0;
	}
	return err;
}

/* Root's child can only ask for files of code; another user's opens what that user may. */
static int give_up_rights(const struct analyst_task *task, pid_t parent)
{
	int err;

	prctl(PR_SET_NAME, "leak-reader");
	if (task->broker_fd >= 0) {
		broker_use(task->broker_fd);
		own_mounts_note();
		return unprivileged_confine_child(parent);
	}
	err = unprivileged_become();
	/* It is of no use without the process that waits for it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() != parent ? -ESRCH : err;
}

static int analyse(struct analyst_task *task, const struct snapshot *snapshot,
		   const struct lost_list *before, int fd, pid_t parent)
{
	struct scan scan;
	int err = give_up_rights(task, parent), status;

	if (err)
		return ANALYST_FAILED;
	err = scan_init(&scan, snapshot, task->traced.read ? &task->traced : NULL, before);
	if (err == -EEXIST || (!err && scan.heap.allocator && !scan.heap.is_whole)) {
		if (!task->accepts_doubt)
			return ANALYST_AGAIN;
	}
	if (err) {
		diag_error("cannot analyse the heap of process %d: %s", snapshot->pid,
			   err == -EEXIST  ? "what it says of itself is contradictory"
			   : err == -E2BIG ? "it is too large"
					   : strerror(-err));
		status = ANALYST_FAILED;
	} else {
		err = task->write ? task->write(task->context, &scan) : write_lost(&scan, fd);
		status = err ? ANALYST_FAILED : ANALYST_DONE;
	}
	scan_deinit(&scan);
	return status;
}

/* Reads all that the child writes. */
static int read_lost(int fd, struct lost_list *ret)
{
	size_t size = 0, capacity = 0;
	char *bytes = NULL;
	ssize_t len;

	do {
		if (size == capacity) {
			char *grown;

			capacity = capacity ? capacity * 2 : 65536;
			grown = capacity / sizeof(struct lost_before) > MAX_LOST
					? NULL
					: realloc(bytes, capacity);
			if (!grown) {
				free(bytes);
				return -ENOMEM;
			}
			bytes = grown;
		}
		len = read(fd, bytes + size, capacity - size);
		size += len > 0 ? (size_t)len : 0;
	} while (len > 0 || (len < 0 && errno == EINTR));
	ret->blocks = (struct lost_before *)(void *)bytes;
	ret->nr = size / sizeof(*ret->blocks);
	return 0;
}

/* The copies, which other children do not get. */
static void let_fork(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_regions; i++)
		if (snapshot->regions[i].bytes)
			madvise(snapshot->regions[i].bytes, snapshot->regions[i].buffer_bytes,
				MADV_DOFORK);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status)) {
		diag_error("the analysis was ended by signal %d (%s)", WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
		return -EIO;
	}
	switch (WEXITSTATUS(status)) {
	case ANALYST_DONE:
		return 0;
	case ANALYST_AGAIN:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

int analyst_run(struct analyst_task *task, const struct snapshot *snapshot,
		const struct lost_list *before)
{
	pid_t own_pid = getpid(), pid;
	int fds[2], err, list_err;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		err = -errno;
		diag_error("cannot start the analysis: %s", strerror(-err));
		return err;
	}
	let_fork(snapshot);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		_exit(analyse(task, snapshot, before, fds[1], own_pid));
	}
	err = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (err)
		diag_error("cannot start the analysis: %s", strerror(-err));
	list_err = err ? 0 : read_lost(fds[0], &task->lost);
	close(fds[0]);
	if (!err)
		err = wait_for(pid);
	if (!err && list_err) {
		diag_error("cannot keep the list of lost blocks: out of memory");
		err = list_err;
	}
	if (err || task->write)
		analyst_task_deinit(task);
	return err;
}

void analyst_task_deinit(struct analyst_task *task)
{
	free(task->lost.blocks);
	task->lost = (struct lost_list){0};
}
