/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/apart.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 65536

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

int apart_run(int (*work)(void *argument), void *argument)
{
	/* As in a child of vfork(), libc's state of this thread can be used: this thread waits. */
	_Alignas(16) char stack[STACK_BYTES];
	struct apart apart = {work, argument, -ECHILD};
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	/* Without an exit signal: nobody is to take it for the end of a recorded command. */
	pid = clone(run_apart, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES, &apart);
	if (pid < 0)
		apart.result = -errno;
	else
		waitpid(pid, NULL, __WCLONE);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return apart.result;
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
