/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/apart.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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
