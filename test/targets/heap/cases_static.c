// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A statically linked program: its executable has its allocator.
 *
 * Exact: every count from truth_begin() on. A static glibc also allocates before main()
 * (_dl_non_dynamic_init() in elf/dl-support.c), the same in each run: compare with "--rounds 0" if
 * it is recorded from its first instruction. In a static link aligned_alloc, too, is an alias of
 * memalign.
 */
#include "truth.h"

static void one_round(void)
{
	void *block = t_malloc(100), *aligned;

	block = t_realloc(block, 3000);
	t_free(block);
	t_malloc(3072);
	t_free(t_calloc(10, 30));
	t_free(t_memalign(64, 500));
	t_free(t_aligned_alloc(128, 512));
	t_free(t_valloc(600));
	t_free(t_pvalloc(601));
	t_free(NULL);
	if (t_posix_memalign(&aligned, 64, 700))
		truth_die("cases_static: out of memory\n");
	t_free(aligned);
}

int main(int argc, char **argv)
{
	long rounds;

	truth_init(argc, argv);
	rounds = truth_option(argc, argv, "--rounds", 40);
	truth_begin();
	for (long i = 0; i < rounds; i++)
		one_round();
	truth_print();
	/* exit() would free what the unwinder of gcc 13 and later allocates before main(). */
	_exit(0);
}
