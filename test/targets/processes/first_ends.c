// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first thread ends after the line for which truth_begin() waits. Another thread works on: two
 * rounds (--rounds N) of calls, each after one more line. With --wait only.
 *
 * --idle N: that many threads exist before it. The oldest one ends when a round begins.
 */
#include "truth.h"

#include <semaphore.h>
#include <sys/syscall.h>

struct idle {
	sem_t end;
	_Atomic pid_t tid;
};

static struct idle *idle;
static long nr_idle, nr_rounds;

static void *idle_run(void *arg)
{
	struct idle *self = arg;

	self->tid = gettid();
	while (sem_wait(&self->end))
		;
	/* pthread_exit() would load a library, which allocates. */
	syscall(SYS_exit, 0);
	return NULL;
}

static void start_idle(void)
{
	struct truth_thread thread;

	idle = mmap(NULL, (size_t)(nr_idle + 1) * sizeof(*idle), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (idle == MAP_FAILED)
		truth_die("first_ends: out of memory\n");
	for (long i = 0; i < nr_idle; i++) {
		sem_init(&idle[i].end, 0, 0);
		truth_thread_start(&thread, idle_run, &idle[i]);
		while (!idle[i].tid)
			usleep(1000);
	}
}

static void end_idle(long i)
{
	if (i >= nr_idle)
		return;
	sem_post(&idle[i].end);
	while (syscall(SYS_tgkill, getpid(), idle[i].tid, 0) == 0)
		usleep(1000);
}

static void *others_run(void *arg)
{
	char go;

	while (!truth.counting)
		usleep(1000);
	for (long round = 0; round < nr_rounds; round++) {
		if (read(STDIN_FILENO, &go, 1) != 1)
			truth_die("first_ends: stdin closed before the line to go on\n");
		end_idle(round);
		for (int i = 0; i < 100; i++) {
			void *block = t_malloc(3072);

			if (i % 10)
				t_free(block);
		}
	}
	truth_print();
	_exit(0);
}

int main(int argc, char **argv)
{
	struct truth_thread thread;

	truth_init(argc, argv);
	nr_idle = truth_option(argc, argv, "--idle", 0);
	nr_rounds = truth_option(argc, argv, "--rounds", 2);
	start_idle();
	truth_thread_start(&thread, others_run, NULL);
	truth_begin();
	syscall(SYS_exit, 0); /* as idle_run() does it */
}
