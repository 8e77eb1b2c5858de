// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Forked processes with threads. Some threads create threads, fork and end, while other threads of
 * their process continue. Then the first thread of the process ends, and the last ones work on.
 * --idle N: the process that forks them has that many threads that do nothing.
 *
 * Exact: held blocks of 4001 to 4006 bytes, of all processes together.
 */
#include "truth.h"

#include <sys/syscall.h>

#define NR_CHILDREN 4
#define NR_ROUNDS   3

/*
 * Two of these blocks stay held. This does not use truth.h: another thread may hold its lock during
 * a fork.
 */
static void allocate(size_t size)
{
	for (int i = 0; i < 20; i++) {
		void *block = malloc(size);

		if (i % 10)
			free(block);
	}
}

static void *inner(void *unused)
{
	(void)unused;
	allocate(4001);
	return NULL;
}

static void fork_once(void)
{
	pid_t child = fork();

	if (child < 0)
		truth_die("fork_threads: cannot fork\n");
	if (child == 0) {
		allocate(4002);
		_exit(0);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void *outer(void *unused)
{
	struct truth_thread thread;

	(void)unused;
	for (int i = 0; i < NR_ROUNDS; i++) {
		truth_thread_start(&thread, inner, NULL);
		allocate(4003);
		truth_thread_join(&thread);
		allocate(4004);
	}
	fork_once();
	return NULL;
}

static void *last(void *unused)
{
	outer(unused);
	_exit(0);
}

static void live(void)
{
	static struct truth_thread threads[2], last_thread;

	for (int i = 0; i < NR_ROUNDS; i++) {
		for (size_t j = 0; j < 2; j++)
			truth_thread_start(&threads[j], outer, NULL);
		allocate(4005);
		for (size_t j = 0; j < 2; j++)
			truth_thread_join(&threads[j]);
		allocate(4006);
	}
	truth_thread_start(&last_thread, last, NULL);
	syscall(SYS_exit, 0); /* ends this thread only */
}

static void tell(void)
{
	const long nr_outer = NR_CHILDREN * (2 * NR_ROUNDS + 1);

	truth_tell("held_4001", 2 * NR_ROUNDS * nr_outer);
	truth_tell("held_4002", 2 * nr_outer);
	truth_tell("held_4003", 2 * NR_ROUNDS * nr_outer);
	truth_tell("held_4004", 2 * NR_ROUNDS * nr_outer);
	truth_tell("held_4005", 2 * NR_ROUNDS * NR_CHILDREN);
	truth_tell("held_4006", 2 * NR_ROUNDS * NR_CHILDREN);
}

int main(int argc, char **argv)
{
	truth_init(argc, argv);
	truth_start_idle(truth_option(argc, argv, "--idle", 0));
	truth_begin();
	for (int i = 0; i < NR_CHILDREN; i++) {
		pid_t child = fork();

		if (child < 0)
			truth_die("fork_threads: cannot fork\n");
		if (child == 0)
			live();
	}
	while (wait(NULL) > 0)
		;
	tell();
	return 0;
}
