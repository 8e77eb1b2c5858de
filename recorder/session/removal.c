/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/removal.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"
#include "recorder/processes/helper_name.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int unregister_all(const struct removal *removal)
{
	int first_err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(removal->sets); i++) {
		int err = probe_set_unregister(removal->sets[i]);

		if (err && !first_err)
			first_err = err;
	}
	return first_err;
}

/* Detaches this process from the recorder, so that signals for the recorder do not end it. */
static void become_leak_end(int messages_fd)
{
	sigset_t all;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	helper_rename("leak-end");
	/* Readers of the recorder's output must not wait for this process. */
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	dup2(messages_fd, STDERR_FILENO);
	/*
	 * The remaining work needs no capabilities, only the user id. The bounding set has been
	 * dropped: libcap-ng 0.8.5 fails if it is to be dropped again, without
	 * CAP_SETPCAP.
	 */
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0 && geteuid() == 0)
		diag_warn("leak-end keeps its capabilities: they cannot be dropped");
}

/*
 * Closes events, links and all other descriptors but @kept_fd and files: a lease (file_leases.h)
 * has to outlast the probes.
 */
static void close_all(int kept_fd)
{
	struct stat st;
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fd != dirfd(dir) && fd != kept_fd &&
		    fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
			close(fd);
	}
	/* Without /proc, close all here. */
	if (!dir)
		syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
}

/* Returns when the other end of the pipe is closed. */
static void wait_for_close(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
}

/*
 * Starts a process that has all descriptors, and ends when *@ret_go_fd is closed, at the latest by
 * leak-end's end. It closes the links and events last, and only by its end: a process that ends
 * gets no signal any more (prepare_signal() in kernel/signal.c, Linux 6.18). In close(), a SIGKILL
 * would leave breakpoints in the target: while one waits, uprobe_write_opcode() fails with EINTR
 * (kernel/events/uprobes.c), and nothing tries again. Returns -1 if leak-end has to close them.
 */
static pid_t start_leak_close(int *ret_go_fd)
{
	int go[2];
	pid_t pid;

	*ret_go_fd = -1;
	if (pipe2(go, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		helper_rename("leak-close");
		close(go[1]);
		wait_for_close(go[0]);
		_exit(0);
	}
	close(go[0]);
	*ret_go_fd = go[1];
	return pid;
}

static void __attribute__((noreturn))
run_leak_end(const struct removal *removal, int go_fd, int messages_fd)
{
	int close_fd;
	pid_t closer;

	become_leak_end(messages_fd);
	close(removal->go_fd);
	closer = start_leak_close(&close_fd);
	wait_for_close(go_fd);
	close_all(close_fd);
	close(close_fd);
	if (closer > 0)
		waitpid(closer, NULL, 0);
	_exit(unregister_all(removal) ? 1 : 0);
}

void removal_begin(struct removal *ret, struct probe_set *first, struct probe_set *second)
{
	_cleanup_close_ int go_read = -1, messages_write = -1;
	int go[2], messages[2];

	*ret = (struct removal){{first, second}, 0, -1, -1, -1};
	if (pipe2(go, O_CLOEXEC) < 0)
		return;
	go_read = go[0];
	ret->go_fd = go[1];
	if (pipe2(messages, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	ret->messages_fd = messages[0];
	messages_write = messages[1];
	ret->pid = fork();
	if (ret->pid == 0)
		run_leak_end(ret, go_read, messages_write);
	if (ret->pid > 0)
		ret->child_fd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	else
		ret->pid = 0;
}

/* Prints the child's messages. The child writes to no pipe whose reader would wait for its end. */
static void pass_on(int messages_fd)
{
	char text[4096];
	ssize_t len;

	while ((len = read(messages_fd, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)len) != len)
			return;
}

/* Waits for the child. Returns true if it has ended. */
static bool wait_for_leak_end(const struct removal *removal, int signal_fd, uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{.fd = removal->child_fd, .events = POLLIN},
		{.fd = signal_fd, .events = POLLIN},
	};
	uint64_t now_ns = clock_now_ns(), left_ms;

	/* There was no descriptor left: waitpid() waits. */
	if (removal->child_fd < 0)
		return true;
	while (now_ns < deadline_ns) {
		left_ms = (deadline_ns - now_ns) / 1000000 + 1;
		if (poll(fds, ARRAY_SIZE(fds), left_ms < 60000 ? (int)left_ms : 60000) < 0 &&
		    errno != EINTR)
			return false;
		if (fds[0].revents)
			return true;
		if (fds[1].revents)
			return false;
		now_ns = clock_now_ns();
	}
	return false;
}

int removal_finish(struct removal *removal, int signal_fd, uint64_t deadline_ns)
{
	int status = 0, err = 0;

	if (removal->go_fd >= 0)
		close(removal->go_fd);
	if (!removal->pid)
		err = unregister_all(removal);
	else if (wait_for_leak_end(removal, signal_fd, deadline_ns) &&
		 waitpid(removal->pid, &status, 0) == removal->pid && status)
		err = -EIO;
	if (WIFSIGNALED(status))
		diag_error("leak-end was killed by signal %d: probes may be left in tracefs, which "
			   "`leakprobe list` removes",
			   WTERMSIG(status));
	if (removal->messages_fd >= 0) {
		pass_on(removal->messages_fd);
		close(removal->messages_fd);
	}
	if (removal->child_fd >= 0)
		close(removal->child_fd);
	return err;
}
