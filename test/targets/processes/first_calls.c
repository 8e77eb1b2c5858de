// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that preempt others inside posix_memalign(), and then make their own first call of it.
 * Prints nothing: all blocks have 1000 or 2000 bytes.
 *
 *   --seconds N (2)  how long new threads are made
 *   --busy N (8)     threads that do nothing but call it, on as few CPUs as there are
 */
#include "truth.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define NR_NEW	 16
#define MAX_BUSY 64

static atomic_bool ended;

static void set_niceness(int niceness)
{
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), niceness))
		truth_die("first_calls: cannot set the niceness\n");
}

static void *call_often(void *arg)
{
	void *block;

	set_niceness(10);
	while (!ended) {
		if ((posix_memalign)(&block, 64, 1000))
			truth_die("first_calls: out of memory\n");
		(free)(block);
	}
	return NULL;
}

static void *call_first(void *arg)
{
	void *block;

	if ((posix_memalign)(&block, 64, 1000))
		truth_die("first_calls: out of memory\n");
	(free)((realloc)(block, 2000));
	return NULL;
}

static void start(pthread_t *threads, long nr, void *(*run)(void *))
{
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			truth_die("first_calls: cannot create a thread\n");
}

static void join(pthread_t *threads, long nr)
{
	for (long i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + truth_option(argc, argv, "--seconds", 2);
	long nr_busy = truth_option(argc, argv, "--busy", 8);
	pthread_t busy[MAX_BUSY], new[NR_NEW];

	if (nr_busy > MAX_BUSY)
		truth_die("first_calls: too many threads\n");
	set_niceness(-20);
	start(busy, nr_busy, call_often);
	while (time(NULL) < end) {
		start(new, NR_NEW, call_first);
		join(new, NR_NEW);
	}
	ended = true;
	join(busy, nr_busy);
	return 0;
}
