/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/conditions/process_ends.h"

#include "common/clock.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/pidfd.h, from Linux 6.13 on; exit_code: from 6.15 on */
struct pidfd_info_v0 {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};

_Static_assert(sizeof(struct pidfd_info_v0) == 64, "PIDFD_INFO_SIZE_VER0");

#define PIDFD_INFO_EXIT_BIT (1 << 3)
#define PIDFD_GET_INFO_V0   _IOWR(0xff, 11, struct pidfd_info_v0)

#define STAT_BYTES	    1024
#define EXIT_CODE_GAP	    49 /* fields between the state, the third, and the exit code, the 52nd */
#define SIGNAL_BITS	    0x7f

static void release(const struct process_end *end)
{
	close(end->pid_fd);
	if (end->proc_fd >= 0)
		close(end->proc_fd);
}

void process_ends_deinit(struct process_ends *ends)
{
	for (size_t i = 0; i < ends->nr; i++)
		release(&ends->list[i]);
	ends->nr = 0;
}

void process_ends_add(struct process_ends *ends, pid_t pid, bool is_forked)
{
	struct process_end *end = &ends->list[ends->nr];
	char path[PROC_FILE_PATH_SIZE];

	if (pid == getpid())
		return;
	if (ends->nr == PROCESS_ENDS_MAX) {
		ends->left_out = true;
		return;
	}
	end->is_forked = is_forked;
	end->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end->pid_fd < 0)
		return;
	proc_file_path(path, pid, "");
	end->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ends->nr++;
}

void process_ends_wait(const struct process_ends *ends, int timeout_ms)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;

	for (size_t i = 0; i < ends->nr; i++) {
		struct pollfd fd = {ends->list[i].pid_fd, POLLIN, 0};
		uint64_t now_ns = clock_now_ns();

		poll(&fd, 1, now_ns < end_ns ? (int)((end_ns - now_ns) / 1000000) : 0);
	}
}

/*
 * True if this process may not trace that one, which has ended. Its exit code then reads as 0
 * (do_task_stat(), fs/proc/array.c, Linux 6.18), and so does that of an orderly end.
 */
static bool is_hidden(int proc_fd)
{
	char byte;

	/* It has no program any more: ENOENT for those who may trace it. */
	return readlinkat(proc_fd, "exe", &byte, 1) < 0 && errno == EACCES;
}

/* Of a process that waits for its parent. Returns 0, or -1: that is over, or it is hidden. */
static int read_stat(int proc_fd, int *ret_code)
{
	char text[STAT_BYTES], *at;

	if (proc_fd < 0 || proc_file_read_at(proc_fd, "stat", text, sizeof(text)))
		return -1;
	/* The name, in parentheses, may have any characters. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !strchr("ZX", at[2]))
		return -1;
	at += 2;
	for (int i = 0; i < EXIT_CODE_GAP && at; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -1;
	*ret_code = (int)strtol(at + 1, NULL, 10);
	return *ret_code || !is_hidden(proc_fd) ? 0 : -1;
}

static int read_info(int pid_fd, int *ret_code)
{
	struct pidfd_info_v0 info = {.mask = PIDFD_INFO_EXIT_BIT};

	if (ioctl(pid_fd, PIDFD_GET_INFO_V0, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT_BIT))
		return -1;
	*ret_code = info.exit_code;
	return 0;
}

/* How it ended, as process_ends_check() says. */
static int signal_of(const struct process_end *end)
{
	int code = 0;

	if (read_stat(end->proc_fd, &code) && read_info(end->pid_fd, &code))
		return end->is_forked ? 0 : PROCESS_ENDS_UNKNOWN;
	return code & SIGNAL_BITS;
}

int process_ends_check(struct process_ends *ends)
{
	struct pollfd fds[PROCESS_ENDS_MAX];
	int found = 0;

	for (size_t j = 0; j < ends->nr; j++)
		fds[j] = (struct pollfd){ends->list[j].pid_fd, POLLIN, 0};
	if (poll(fds, ends->nr, 0) <= 0)
		return 0;
	/* From the end, so that what moves has been looked at. */
	for (size_t i = ends->nr; i-- > 0 && !found;) {
		if (!fds[i].revents)
			continue;
		found = signal_of(&ends->list[i]);
		release(&ends->list[i]);
		ends->list[i] = ends->list[--ends->nr];
	}
	return found;
}
