/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/suspension.h"

#include "common/scope.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The signal handler's table. */
static struct target_table *suspended_table;
static volatile sig_atomic_t nr_suspensions;

void suspension_let_go(struct target_table *table)
{
	target_table_continue_all(table);
	/* Programs that were running may have stopped a target meanwhile. Wait for them to end. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	target_table_continue_all(table);
}

/*
 * Handles Ctrl-Z, which stops the recorder but not the targets: stopped targets continue, and none
 * is stopped until `fg`. A signal handler does this, because the recorder may be waiting for
 * anything.
 */
static void on_suspend(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL}, ours;
	int saved_errno = errno;
	sigset_t set, before;

	target_table_pause(suspended_table, true);
	suspension_let_go(suspended_table);
	sigaction(number, &action, &ours);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	/* The recorder stops here, unless no shell could continue it. */
	sigprocmask(SIG_UNBLOCK, &set, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(number, &ours, NULL);
	nr_suspensions++;
	target_table_pause(suspended_table, false);
	errno = saved_errno;
}

void suspension_watch(struct target_table *table)
{
	static const int numbers[] = {SIGTSTP, SIGTTIN};
	struct sigaction action = {.sa_handler = on_suspend, .sa_flags = SA_RESTART}, before;
	sigset_t set;

	suspended_table = table;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	/* Let a recorder in the background write messages, also with `stty tostop`. */
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void suspension_unwatch(void)
{
	static const int numbers[] = {SIGTSTP, SIGTTIN};
	struct sigaction before;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == on_suspend)
			signal(numbers[i], SIG_DFL);
	suspended_table = NULL;
}

unsigned int suspension_count(void)
{
	return (unsigned int)nr_suspensions;
}
