// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker that allocates until SIGKILL ends it, and its parent, which prints the worker's counts.
 * Without options the worker kills itself after --blocks allocations. With --from-outside the
 * parent kills it once it has made that many, while it goes on allocating.
 *
 * With --wait the worker prints "ready PID" and waits.
 *
 * Exact if the worker kills itself: every count. If it is killed from outside, it may have been
 * between a call and its counter: malloc counts calls begun, allocations counts calls finished, and
 * the recording lies between.
 */
#include "truth.h"

#include <signal.h>
#include <time.h>

static void *recent[16];

static void allocate_one(long i)
{
	t_free(recent[i % 16]);
	recent[i % 16] = t_malloc(i % 100 ? 256 : 3072);
	if (i % 100 == 0)
		recent[i % 16] = NULL; /* forgotten */
}

static void worker_run(long nr_blocks, bool from_outside)
{
	truth_begin();
	for (long i = 0; from_outside || i < nr_blocks; i++)
		allocate_one(i);
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	bool from_outside;
	long nr_blocks;
	pid_t worker;
	int status;

	truth_init(argc, argv);
	from_outside = truth_flag(argc, argv, "--from-outside");
	nr_blocks = truth_option(argc, argv, "--blocks", 3000);
	worker = fork();
	if (worker < 0)
		truth_die("killed: cannot fork\n");
	if (worker == 0) {
		truth_forked();
		worker_run(nr_blocks, from_outside);
	}
	while (from_outside && truth_get(TRUTH_ALLOCATIONS) < nr_blocks) {
		const struct timespec poll = {.tv_nsec = 1000000};

		if (waitpid(worker, NULL, WNOHANG))
			truth_die("killed: the worker ended early\n");
		nanosleep(&poll, NULL);
	}
	if (from_outside)
		kill(worker, SIGKILL);
	if (waitpid(worker, &status, 0) != worker || !WIFSIGNALED(status))
		truth_die("killed: the worker was not killed\n");
	truth_print();
	return 0;
}
