// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * free(NULL), which is allowed and not reported, failed allocations, and frees of blocks that were
 * allocated before the recording (with --wait).
 *
 * Exact: every count.
 */
#include "truth.h"

#define NR_BEFORE 25

int main(int argc, char **argv)
{
	volatile size_t many = 1ul << 34; /* hidden from the compiler, which would warn */
	void *before[NR_BEFORE];

	truth_init(argc, argv);
	for (size_t i = 0; i < NR_BEFORE; i++)
		before[i] = t_malloc(50 + i);
	truth_begin();
	for (int i = 0; i < 100; i++)
		t_free(NULL);
	for (size_t i = 0; i < NR_BEFORE; i++)
		t_free(before[i]);
	if (t_malloc(PTRDIFF_MAX) || t_calloc(many, many))
		truth_die("null_free: the huge request succeeded\n");
	t_free(t_malloc(10));
	t_malloc(11);
	truth_print();
	return 0;
}
