// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * realloc in all its cases: grown in place, moved, shrunk, from NULL, to size 0, failing (the old
 * block stays held), of blocks that glibc mmaps and mremaps, of a block allocated before recording
 * began, and by two threads that take over each other's old addresses.
 *
 * Exact: every count but free, to which each thread's exit adds.
 */
#include "truth.h"

#define TOO_BIG (PTRDIFF_MAX - 4096)

static void *from_before;

static void *grow(void *block, size_t size_bytes)
{
	void *grown = t_realloc(block, size_bytes);

	if (!grown)
		truth_die("realloc_cases: out of memory\n");
	return grown;
}

static void in_place_and_moved(void)
{
	void *block = t_malloc(100), *barrier;

	block = grow(block, 104);  /* the same chunk */
	barrier = t_malloc(100);   /* keeps the block from growing in place */
	block = grow(block, 5000); /* moves */
	block = grow(block, 50);   /* shrinks */
	t_free(block);
	block = grow(NULL, 200);
	block = grow(block, 3000);
	t_free(barrier);
	barrier = grow(block, 3072); /* held */
}

static void size_zero(void)
{
	void *block = t_malloc(300);

	block = t_realloc(block, 0); /* some allocators return NULL, others a block of 0 bytes */
	t_free(block);
	block = t_realloc(NULL, 0); /* malloc(0) */
	t_free(block);
}

static void failing(void)
{
	void *block = t_malloc(301);

	if (t_realloc(block, TOO_BIG))
		truth_die("realloc_cases: the huge request succeeded\n");
	if (t_realloc(NULL, TOO_BIG))
		truth_die("realloc_cases: the huge request succeeded\n");
	t_malloc(302);
	t_free(block); /* still held until here */
	block = t_malloc(303);
	if (t_realloc(block, TOO_BIG))
		truth_die("realloc_cases: the huge request succeeded\n");
	/* 303 stays held. */
}

/* Sizes above the mmap threshold (128 KiB): grows by mremap, then shrinks into the arena. */
static void huge(void)
{
	char *block = t_malloc(1 << 20);

	for (size_t i = 2; i < 10; i++)
		block = grow(block, i << 20);
	block = grow(block, 3 << 20);
	block = grow(block, 400);
	t_free(block);
	block = t_malloc(2 << 20);
	block = grow(block, 4 << 20); /* held */
}

static void *exchange_run(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		char *block = t_malloc(40);

		for (size_t size = 80; size < 3000; size *= 2)
			block = grow(block, size);
		t_free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct truth_thread threads[2];

	truth_init(argc, argv);
	from_before = t_malloc(600);
	truth_begin();
	from_before = grow(from_before, 9000);
	t_free(from_before);
	in_place_and_moved();
	size_zero();
	failing();
	huge();
	/* With one arena, a thread gets memory that the other one's realloc has just released. */
	if (!mallopt(M_ARENA_MAX, 1))
		truth_die("realloc_cases: mallopt failed\n");
	for (int i = 0; i < 2; i++)
		truth_thread_start(&threads[i], exchange_run, NULL);
	for (int i = 0; i < 2; i++)
		truth_thread_join(&threads[i]);
	truth_print();
	return 0;
}
