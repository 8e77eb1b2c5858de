// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Load: --threads N threads that malloc and free as fast as they can, --pairs N pairs each, from a
 * stack 12 frames deep, without counting between the calls. --leak-every N forgets a 3072-byte
 * block (0: never). --depth N other depths.
 *
 * Exact: malloc, calloc, allocations, frees, held_*.
 */
#include "truth.h"

struct churn {
	struct truth_thread thread;
	long pairs, leak_every, depth;
	long leaked;
};

static void __attribute__((noinline)) one_pair(struct churn *churn, long i)
{
	void *block = malloc(64 + (size_t)(i % 16) * 32);

	if (churn->leak_every && i % churn->leak_every == 0 && malloc(3072))
		churn->leaked++;
	free(block);
}

static void __attribute__((noinline)) descend(struct churn *churn, long depth)
{
	if (depth > 0) {
		descend(churn, depth - 1);
		__asm__ volatile(""); /* Prevents a tail call, so that each level has a frame. */
		return;
	}
	for (long i = 1; i <= churn->pairs; i++)
		one_pair(churn, i);
}

/* These are frames, too: main or start_thread, its caller, run and one_pair. */
static void *churn_run(void *arg)
{
	struct churn *churn = arg;

	descend(churn, churn->depth - 5);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct churn churns[64];
	long nr_threads, pairs;

	truth_init(argc, argv);
	nr_threads = truth_option(argc, argv, "--threads", 2);
	pairs = truth_option(argc, argv, "--pairs", 20000);
	if (nr_threads > 64)
		truth_die("big_churn: at most 64 threads\n");
	truth_begin();
	for (long i = 0; i < nr_threads; i++) {
		churns[i].pairs = pairs;
		churns[i].leak_every = truth_option(argc, argv, "--leak-every", 0);
		churns[i].depth = truth_option(argc, argv, "--depth", 12);
		truth_thread_start(&churns[i].thread, churn_run, &churns[i]);
	}
	for (long i = 0; i < nr_threads; i++) {
		long leaked;

		truth_thread_join(&churns[i].thread);
		leaked = churns[i].leaked;
		truth_count(TRUTH_MALLOC, pairs + leaked);
		truth_count(TRUTH_ALLOCATIONS, pairs + leaked);
		truth_count(TRUTH_FREE, pairs);
		truth_count(TRUTH_FREES, pairs);
		truth_count_held(3072, leaked);
	}
	truth_print();
	return 0;
}
