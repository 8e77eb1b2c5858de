// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program with its own pool, which it allocates once by malloc, and reports by LEAK_ALLOC() and
 * LEAK_FREE(): at two places each, one of them also in a forked child.
 *
 * Prints: pool_given, pool_taken, pool_held and pool_bytes, of both processes; and slots_bytes of
 * malloc.
 */
#include "truth.h"

#include <leaktools/leak_probes.h>
#include <sys/wait.h>

#define NR_SLOTS   128
#define SLOT_BYTES 64

static char *slots;
static int nr_used;

static void *slot_get(size_t size_bytes)
{
	char *slot = nr_used < NR_SLOTS ? slots + (size_t)nr_used++ * SLOT_BYTES : NULL;

	LEAK_ALLOC(slot, size_bytes);
	return slot;
}

static void slot_put(void *slot)
{
	LEAK_FREE(slot);
}

static void use(int nr, int nr_kept)
{
	for (int i = 0; i < nr; i++) {
		void *slot = slot_get(48);

		if (i >= nr_kept)
			slot_put(slot);
	}
	slot_put(NULL);
}

int main(int argc, char **argv)
{
	pid_t child;
	char *other;

	truth_init(argc, argv);
	truth_begin();
	slots = t_malloc((size_t)NR_SLOTS * SLOT_BYTES);
	use(40, 4);
	child = fork();
	if (child == 0) {
		use(20, 3);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		truth_die("pools: no child\n");
	other = slots;
	LEAK_ALLOC(other + 1, 100);
	LEAK_ALLOC(other + 2, 100);
	LEAK_FREE(other + 2);
	truth_tell("pool_given", 62);
	truth_tell("pool_taken", 54);
	truth_tell("pool_held", 8);
	truth_tell("pool_bytes", 7 * 48 + 100);
	truth_print();
	return 0;
}
