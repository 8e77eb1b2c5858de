// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * aligned_alloc, memalign (in glibc one function with two names), valloc and pvalloc.
 *
 * Exact: every count; aligned_alloc and memalign can be told apart only where they have different
 * addresses.
 */
#include "truth.h"

static void keep_some(void *block, int nth)
{
	if (!block)
		truth_die("aligned: out of memory\n");
	if (nth % 4)
		t_free(block);
}

int main(int argc, char **argv)
{
	/* jemalloc has no pvalloc, and could not free a block of libc's pvalloc. */
	bool with_pvalloc = truth_option(argc, argv, "--pvalloc", 1);

	truth_init(argc, argv);
	truth_begin();
	for (int i = 0; i < 40; i++) {
		keep_some(t_aligned_alloc(64, 640), i);
		keep_some(t_memalign(1024, 700), i);
		keep_some(t_valloc(800), i);
		if (with_pvalloc)
			keep_some(t_pvalloc(900), i);
	}
	if (t_aligned_alloc(64, PTRDIFF_MAX) || t_memalign(64, PTRDIFF_MAX) ||
	    t_valloc(PTRDIFF_MAX) || (with_pvalloc && t_pvalloc(PTRDIFF_MAX)))
		truth_die("aligned: the huge request succeeded\n");
	truth_print();
	return 0;
}
