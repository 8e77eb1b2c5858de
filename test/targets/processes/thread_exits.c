// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that fill their tcache and exit. glibc flushes it through free(): each pointer a second
 * time, then the cache itself, which no probed function allocated. Each thread also hands one block
 * to its successor, which frees it, and forgets one of 3072 bytes.
 *
 * Exact: malloc, calloc, allocations, frees, held_*, double_free and free_unknown (none). There are
 * more free events: what the exits flush.
 */
#include "truth.h"

static void *handed_on;

static void fill_cache(void)
{
	void *blocks[40];

	for (size_t i = 0; i < 40; i++)
		blocks[i] = t_malloc(16 + i * 16);
	for (size_t i = 0; i < 40; i++)
		t_free(blocks[i]);
	for (size_t i = 0; i < 7; i++)
		blocks[i] = t_malloc(200);
	for (size_t i = 0; i < 7; i++)
		t_free(blocks[i]);
}

static void *thread_run(void *arg)
{
	fill_cache();
	t_free(handed_on);
	handed_on = t_malloc(1000);
	/* Fills the cache again, so that a released address is allocated again before the flush. */
	fill_cache();
	t_malloc(3072);
	return NULL;
}

int main(int argc, char **argv)
{
	struct truth_thread thread;
	long nr_threads;

	truth_init(argc, argv);
	nr_threads = truth_option(argc, argv, "--threads", 50);
	truth_begin();
	handed_on = t_malloc(1000);
	for (long i = 0; i < nr_threads; i++) {
		truth_thread_start(&thread, thread_run, NULL);
		truth_thread_join(&thread);
	}
	t_free(handed_on);
	truth_print();
	return 0;
}
