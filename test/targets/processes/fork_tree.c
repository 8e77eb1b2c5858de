// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three generations of processes. Each child frees blocks that it inherited (its parent's stay
 * held), allocates its own, frees some, forgets some; every other one ends by _exit().
 *
 * Exact: every count, of all processes together.
 */
#include "truth.h"

#define NR_BLOCKS      100
#define NR_CHILDREN    3
#define NR_GENERATIONS 2

static void *blocks[NR_BLOCKS];

static void allocate_own(int generation)
{
	for (size_t i = 0; i < 30; i++) {
		void *block = t_malloc(500 + (size_t)generation * 100);

		if (i % 10 != 0)
			t_free(block);
	}
}

/* Each generation frees another tenth of the blocks that its parent had. */
static void free_inherited(int generation)
{
	for (size_t i = (size_t)generation; i < NR_BLOCKS; i += 10) {
		t_free(blocks[i]);
		blocks[i] = NULL;
	}
}

static void live(int generation, int nth)
{
	allocate_own(generation);
	for (int i = 0; i < NR_CHILDREN && generation < NR_GENERATIONS; i++) {
		pid_t child = fork();

		if (child < 0)
			truth_die("fork_tree: cannot fork\n");
		if (child == 0) {
			truth_forked();
			free_inherited(generation + 1);
			live(generation + 1, i);
		}
	}
	while (wait(NULL) > 0)
		;
	if (generation > 0) {
		if (nth % 2)
			_exit(0);
		exit(0);
	}
}

int main(int argc, char **argv)
{
	truth_init(argc, argv);
	truth_begin();
	for (size_t i = 0; i < NR_BLOCKS; i++)
		blocks[i] = t_malloc(64 + i);
	live(0, 0);
	for (size_t i = 0; i < NR_BLOCKS; i += 2)
		t_free(blocks[i]);
	truth_print();
	return 0;
}
