/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/pause_guard.h"

#include "common/diag.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 1000 /* to let go of the process at the limit */

/* The guarded process's descriptor tells it from the next process with its id. */
static void __attribute__((noreturn)) guard(int process_fd, int fd, uint64_t limit_ns)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};

	setsid();
	if (poll(&end, 1, (int)(limit_ns / 1000000) + GRACE_MS) == 0)
		syscall(SYS_pidfd_send_signal, process_fd, SIGKILL, NULL, 0);
	_exit(0);
}

int pause_guard_start(struct pause_guard *ret, uint64_t limit_ns)
{
	int process_fd = (int)syscall(SYS_pidfd_open, getpid(), 0), fds[2] = {-1, -1}, err = 0;

	*ret = (struct pause_guard){-1, -1};
	if (process_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
	} else {
		ret->fd = fds[0];
		ret->pid = fork();
		if (ret->pid < 0)
			err = -errno;
		if (ret->pid == 0) {
			close(fds[0]);
			guard(process_fd, fds[1], limit_ns);
		}
	}
	if (process_fd >= 0)
		close(process_fd);
	if (fds[1] >= 0)
		close(fds[1]);
	if (err) {
		diag_error("cannot start the process that guards the pause: %s", strerror(-err));
		pause_guard_end(ret);
	}
	return err;
}

void pause_guard_end(struct pause_guard *guard)
{
	if (guard->fd >= 0)
		close(guard->fd);
	while (guard->pid > 0 && waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*guard = (struct pause_guard){-1, -1};
}
