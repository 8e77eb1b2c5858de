/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/threads/thread_team.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

/* As the first thread's mostly is. Of hostile names, demangling takes much; musl gives 128 KiB. */
#define STACK_BYTES ((size_t)8 << 20)

struct member {
	void (*run)(void *context, unsigned thread);
	void *context;
	unsigned thread;
};

unsigned thread_team_size(void)
{
	cpu_set_t cpus;
	int nr = TEAM_MAX_THREADS;

	/* It fails if the kernel knows more CPUs than the set has room for. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		nr = CPU_COUNT(&cpus);
	return nr < TEAM_MAX_THREADS ? (unsigned)nr : TEAM_MAX_THREADS;
}

static void *run_member(void *argument)
{
	const struct member *member = argument;

	member->run(member->context, member->thread);
	return NULL;
}

void thread_team_run(unsigned nr_threads, void (*run)(void *context, unsigned thread),
		     void *context)
{
	struct member members[TEAM_MAX_THREADS];
	pthread_t threads[TEAM_MAX_THREADS];
	unsigned nr_started = 0;
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (unsigned i = 1; i < nr_threads; i++) {
		members[i] = (struct member){run, context, i};
		if (pthread_create(&threads[nr_started], &attributes, run_member, &members[i]) == 0)
			nr_started++;
	}
	pthread_attr_destroy(&attributes);
	run(context, 0);
	for (unsigned i = 0; i < nr_started; i++)
		pthread_join(threads[i], NULL);
}
