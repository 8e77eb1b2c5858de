// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Blocks of all sizes, for leakfollow: each size from 1000 to 2000 once, and freed; ten of 3072, of
 * which three are held; and blocks that realloc changes to 3072 and from it.
 *
 * Exact: every count. Also printed: enters_3072, exits_3072 (operations on blocks of that size),
 * and the same for 1000..2000.
 */
#include "truth.h"

static void *grow(void *block, size_t size_bytes)
{
	return t_realloc(block, size_bytes);
}

int main(int argc, char **argv)
{
	void *blocks[10], *moving;

	truth_init(argc, argv);
	truth_begin();
	for (size_t size = 1000; size <= 2000; size++)
		t_free(t_malloc(size));
	for (size_t i = 0; i < 10; i++)
		blocks[i] = i % 2 ? t_malloc(3072) : t_calloc(3, 1024);
	for (size_t i = 0; i < 7; i++)
		t_free(blocks[i]);
	t_malloc(3071);
	t_malloc(3073);
	moving = grow(t_malloc(100), 3072); /* to the size: enters */
	moving = grow(moving, 6000);	    /* from it: exits */
	moving = grow(moving, 3072);	    /* enters */
	moving = grow(moving, 3072);	    /* exits and enters */
	t_free(moving);
	truth_tell("enters_3072", 13);
	truth_tell("exits_3072", 10);
	truth_tell("enters_1000_2000", 1001);
	truth_tell("exits_1000_2000", 1001);
	truth_print();
	return 0;
}
