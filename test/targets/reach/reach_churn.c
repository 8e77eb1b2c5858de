/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four threads that allocate and release all the time, and lose nothing. With --mib N, also as much
 * memory in small blocks. With --fastbins, what they release goes through fastbins, which glibc
 * empties again and again. With --threads, they start threads that fill their caches and end. With
 * --paced, they do not keep the CPUs busy, but none of them sleeps for longer than a millisecond.
 * Prints "truth rounds N" for each line on stdin.
 */
#include "truth.h"

#include <malloc.h>
#include <stdio.h>

#define NR_SLOTS 1000
#define NR_BINS	 20
#define CACHED	 100

static _Atomic long rounds;
static bool is_paced;

static void *churn(void *context)
{
	void *volatile *held = calloc(NR_SLOTS, sizeof(*held));
	uint32_t state = (uint32_t)(uintptr_t)context + 1;

	for (;;) {
		uint32_t slot, size;

		state = state * 1103515245 + 12345;
		slot = (state >> 8) % NR_SLOTS;
		size = (state >> 18) % 2000 + 1;
		if (state % 97 == 0) {
			held[slot] = realloc(held[slot], size * 10);
		} else if (held[slot]) {
			free(held[slot]);
			held[slot] = NULL;
		} else {
			held[slot] = malloc(size);
		}
		if (atomic_fetch_add(&rounds, 1) % 256 == 0 && is_paced)
			usleep(1000);
	}
	return NULL;
}

/* Holds some blocks on the way, so that there is something to merge around. */
static void fill_and_release(void *volatile *held, long nr, long keeps_each)
{
	for (long i = 0; i < nr; i++)
		if (!held[i])
			held[i] = malloc((size_t)(i * 16 % 128 + 16));
	for (long i = 0; i < nr; i++) {
		if (i % keeps_each == 0)
			continue;
		free(held[i]);
		held[i] = NULL;
	}
}

static void *churn_fastbins(void *context)
{
	void *volatile *held = calloc(NR_SLOTS, sizeof(*held));

	for (;;) {
		fill_and_release(held, NR_SLOTS, 7);
		/* A large chunk makes glibc empty the fastbins. */
		free(malloc(100000));
		atomic_fetch_add(&rounds, 1);
	}
	return context;
}

/* To fill the cache takes glibc.malloc.tcache_count=CACHED. */
static void *fill_cache(void *context)
{
	void *volatile held[NR_BINS * CACHED];

	for (size_t i = 0; i < NR_BINS * CACHED; i++)
		held[i] = malloc(i / CACHED * 16 + 16);
	for (size_t i = 0; i < NR_BINS * CACHED; i++)
		free(held[i]);
	return context;
}

static void *churn_threads(void *context)
{
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, fill_cache, NULL) || pthread_join(thread, NULL))
			abort();
		atomic_fetch_add(&rounds, 1);
	}
	return context;
}

static void **volatile kept;

int main(int argc, char **argv)
{
	long mib = truth_option(argc, argv, "--mib", 0);
	bool fastbins = truth_flag(argc, argv, "--fastbins");
	bool threads = truth_flag(argc, argv, "--threads");
	char line[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	is_paced = truth_flag(argc, argv, "--paced");
	if (fastbins && !mallopt(M_MXFAST, 160))
		return 1;
	for (long i = 0; i < mib * 8192; i++) {
		void **block = calloc(1, 112);

		if (!block)
			return 1;
		block[0] = (void *)kept;
		kept = block;
	}
	for (uintptr_t i = 0; i < 4; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL,
				   fastbins  ? churn_fastbins
				   : threads ? churn_threads
					     : churn,
				   (void *)i))
			return 1;
	}
	printf("ready %d\n", getpid());
	while (read(STDIN_FILENO, line, 1) == 1)
		printf("truth rounds %ld\n", atomic_load(&rounds));
	return 0;
}
