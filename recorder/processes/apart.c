/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/apart.h"

#include "common/interrupted.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 65536
#define ASK_MS	    50 /* how often apart_open() asks for signals */

struct apart {
	int (*work)(void *argument);
	void *argument;
	int result;
};

static int run_apart(void *argument)
{
	struct apart *apart = argument;

	/* Neither a kill of leakrec's process group nor `pkill leakrec` is meant for it. */
	setsid();
	prctl(PR_SET_NAME, "leak-attach");
	apart->result = apart->work(apart->argument);
	_exit(0);
}

/*
 * Opens all descriptors after @fd once more. The work closes what it has opened when it fails, and
 * to close the last descriptor of a probe's event waits as long as to open it. leak-end closes the
 * others (session/removal.h).
 */
static void keep_open_after(int fd)
{
	int end = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	for (int other = fd + 1; other < end; other++)
		fcntl(other, F_DUPFD_CLOEXEC, 0);
	close(end);
}

/*
 * Returns when the process has ended. After a signal for this one, the process can open nothing
 * more, and this returns true. It shares this thread's libc state: before that, nothing here may
 * set errno.
 */
static bool forbid_when_interrupted(pid_t pid, int pid_fd)
{
	static const struct rlimit none = {0};
	struct pollfd end = {.fd = pid_fd, .events = POLLIN};
	bool is_forbidden = false;

	while (poll(&end, 1, ASK_MS) == 0) {
		if (is_forbidden || !is_interrupted())
			continue;
		is_forbidden = prlimit(pid, RLIMIT_NOFILE, &none, NULL) == 0;
		keep_open_after(pid_fd);
	}
	return is_forbidden;
}

static int run(int (*work)(void *argument), void *argument, bool opens)
{
	/* As in a child of vfork(), libc's state of this thread can be used: this thread waits. */
	_Alignas(16) char stack[STACK_BYTES];
	struct apart apart = {work, argument, -ECHILD};
	bool is_forbidden = false;
	sigset_t all, before;
	int pid_fd = -1;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	/* Without an exit signal: nobody is to take it for the end of a recorded command. */
	pid = clone(run_apart, stack + sizeof(stack),
		    CLONE_VM | CLONE_FILES | (opens ? CLONE_PIDFD : CLONE_VFORK), &apart, &pid_fd);
	if (pid < 0) {
		apart.result = -errno;
	} else {
		if (opens)
			is_forbidden = forbid_when_interrupted(pid, pid_fd);
		waitpid(pid, NULL, __WCLONE);
	}
	if (pid_fd >= 0)
		close(pid_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return is_forbidden && apart.result < 0 ? -EINTR : apart.result;
}

int apart_run(int (*work)(void *argument), void *argument)
{
	return run(work, argument, false);
}

int apart_open(int (*work)(void *argument), void *argument)
{
	return run(work, argument, true);
}

/*
 * The end of a link waits for RCU after it has removed its own breakpoints. So several processes
 * close: else the target would hit the other links' breakpoints meanwhile, and the waits add up.
 */
#define MAX_CLOSERS 16

struct closer {
	_Alignas(16) char stack[STACK_BYTES / 4];
	pid_t pid; /* 0: there is none */
	struct apart_closing *closing;
};

struct apart_closing {
	struct closer closers[MAX_CLOSERS];
	size_t nr_closers;
	int *fds;
	size_t nr;
};

/*
 * Closes each MAX_CLOSERS-th one. This process goes on meanwhile, and the other one has its
 * thread-local storage. So that does nothing but system calls, which do not fail: syscall() would
 * set errno.
 */
static int close_apart(void *argument)
{
	const struct closer *closer = argument;
	const struct apart_closing *closing = closer->closing;

	syscall(SYS_setsid);
	syscall(SYS_prctl, PR_SET_NAME, "leak-detach");
	for (size_t i = (size_t)(closer - closing->closers); i < closing->nr; i += MAX_CLOSERS)
		syscall(SYS_close, closing->fds[i]);
	syscall(SYS_exit, 0);
	return 0;
}

static void release(struct apart_closing *closing)
{
	free(closing->fds);
	free(closing);
}

struct apart_closing *apart_close_begin(int *fds, size_t nr)
{
	struct apart_closing *closing =
		aligned_alloc(_Alignof(struct apart_closing), sizeof(*closing));
	sigset_t all, before;

	if (!closing) {
		for (size_t i = 0; i < nr; i++)
			close(fds[i]);
		free(fds);
		return NULL;
	}
	closing->fds = fds;
	closing->nr = nr;
	closing->nr_closers = nr < MAX_CLOSERS ? nr : MAX_CLOSERS;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < closing->nr_closers; i++) {
		struct closer *closer = &closing->closers[i];

		closer->closing = closing;
		closer->pid = clone(close_apart, closer->stack + sizeof(closer->stack),
				    CLONE_VM | CLONE_FILES, closer);
		if (closer->pid > 0)
			continue;
		closer->pid = 0;
		for (size_t k = i; k < nr; k += MAX_CLOSERS)
			close(fds[k]);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return closing;
}

bool apart_close_is_done(struct apart_closing *closing)
{
	bool is_done = true;

	for (size_t i = 0; closing && i < closing->nr_closers; i++) {
		struct closer *closer = &closing->closers[i];

		if (closer->pid && waitpid(closer->pid, NULL, __WCLONE | WNOHANG) == 0)
			is_done = false;
		else
			closer->pid = 0;
	}
	if (closing && is_done)
		release(closing);
	return is_done;
}

void apart_close_wait(struct apart_closing *closing)
{
	while (!apart_close_is_done(closing))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
