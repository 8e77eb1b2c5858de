// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Double frees that glibc 2.36 does not detect. Seven freed blocks fill the tcache of the size.
 * Further ones go to a fastbin, which compares a freed block only with the newest one (_int_free()
 * in malloc/malloc.c): free(a), free(b), free(a) passes. Then calloc, which does not use the
 * tcache, returns a, b, and a again: a block that is still held.
 *
 * Exact: every count. 3 double frees, 3 blocks still held.
 */
#include "truth.h"

#define TCACHE_COUNT 7 /* TCACHE_FILL_COUNT in malloc/malloc.c */

static void first_free(void *block)
{
	t_free(block);
}

static void second_free(void *block)
{
	t_free(block);
}

static void free_twice(size_t size_bytes)
{
	void *fill[TCACHE_COUNT], *a, *b, *again;

	for (int i = 0; i < TCACHE_COUNT; i++)
		fill[i] = t_malloc(size_bytes);
	a = t_calloc(1, size_bytes);
	b = t_calloc(1, size_bytes);
	for (int i = 0; i < TCACHE_COUNT; i++)
		t_free(fill[i]);
	first_free(a);
	t_free(b);
	second_free(a);

	if (t_calloc(1, size_bytes) != a || t_calloc(1, size_bytes) != b)
		truth_die("double_free: this libc's fastbins are not glibc 2.36's\n");
	again = t_calloc(1, size_bytes);
	if (again != a)
		truth_die("double_free: the second free was noticed\n");
}

int main(int argc, char **argv)
{
	truth_init(argc, argv);
	truth_begin();
	free_twice(24);
	free_twice(56);
	free_twice(104);
	truth_print();
	return 0;
}
