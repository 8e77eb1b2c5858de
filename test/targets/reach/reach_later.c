/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What becomes of recorded blocks after the recording: reach_later BLOCKS (at most 64). "go" on
 * stdin makes it allocate; it says "ready". After "later" it frees and loses some of the blocks,
 * and uses the addresses of others again. It says what is right for each block that it allocated
 * first, and again "ready". It ends with stdin.
 */
#include "reach.h"

#define MAX_BLOCKS   64
#define MAPPED_BYTES 300000 /* more than glibc's limit: it has a mapping of its own */
#define CACHE_BLOCKS 7	    /* a thread's cache gives them out again, the last one first */

/* Each kind of blocks has a size of its own. */
static void *lost[MAX_BLOCKS], *lost_later[MAX_BLOCKS], *kept[MAX_BLOCKS], *freed[MAX_BLOCKS];
static void *reused[CACHE_BLOCKS], *lost_again[CACHE_BLOCKS], *reuse[CACHE_BLOCKS];
static void *covered[2], *cover, *shrunk, *mapped, *mapped_kept;

/* malloc() itself, as calloc() takes nothing from a thread's cache before glibc 2.41. */
static REACH_CASE void *lose_at_once(void)
{
	return block_of(3000);
}

static REACH_CASE void *lose_later(void)
{
	return need(malloc(3016));
}

static REACH_CASE void *keep(void)
{
	return need(malloc(3032));
}

static REACH_CASE void *free_later(void)
{
	return need(malloc(3048));
}

static REACH_CASE void *use_first(size_t size)
{
	return need(malloc(size));
}

static REACH_CASE void *use_again(size_t size)
{
	return need(malloc(size));
}

static REACH_CASE void *map(void)
{
	return need(malloc(MAPPED_BYTES));
}

static REACH_CASE void *align(void)
{
	return need(aligned_alloc(65536, 196608));
}

static void *swap_words(void *p)
{
	return (void *)~(uintptr_t)p;
}

static REACH_CASE void allocate(long nr)
{
	/* First: when they are free, their chunks' addresses lie at the end of what is before. */
	covered[0] = use_first(2000);
	covered[1] = use_first(2000);
	for (long i = 0; i < nr; i++) {
		lost[i] = swap_words(lose_at_once());
		lost_later[i] = lose_later();
		kept[i] = keep();
		freed[i] = free_later();
	}
	for (long i = 0; i < CACHE_BLOCKS; i++) {
		reused[i] = use_first(600);
		lost_again[i] = use_first(700);
	}
	shrunk = use_first(5000);
	mapped = map();
	mapped_kept = align();
}

/* Frees them all, and takes as many of the same size: they have the same addresses. */
static REACH_CASE void replace(void **blocks, size_t size)
{
	for (long i = 0; i < CACHE_BLOCKS; i++)
		free(blocks[i]);
	for (long i = CACHE_BLOCKS - 1; i >= 0; i--) {
		reuse[i] = use_again(size);
		if (reuse[i] != blocks[i])
			abort();
	}
}

static REACH_CASE void change(long nr)
{
	void *reallocated;

	for (long i = 0; i < nr; i++) {
		expect("lost", "lost", swap_words(lost[i]));
		expect("lost-later", "lost", lost_later[i]);
		expect("kept", "held", kept[i]);
		expect("freed", "gone", freed[i]);
		free(freed[i]);
	}
	memset(lost, 0, sizeof(lost));
	memset(lost_later, 0, sizeof(lost_later));
	memset(freed, 0, sizeof(freed));
	replace(lost_again, 700);
	for (long i = 0; i < CACHE_BLOCKS; i++)
		expect("lost-again", "lost", lost_again[i]);
	memset(lost_again, 0, sizeof(lost_again));
	replace(reused, 600);
	for (long i = 0; i < CACHE_BLOCKS; i++)
		expect("reused", "held", reused[i]);
	/* They are neighbours: one block takes the place of both. */
	for (int i = 0; i < 2; i++) {
		expect("covered", "not-scanned", covered[i]);
		free(covered[i]);
	}
	cover = use_again(4000);
	if (cover != covered[0])
		abort();
	expect("shrunk", "gone", shrunk);
	reallocated = realloc(shrunk, 1000);
	if (reallocated != shrunk)
		abort();
	expect("mapped", "gone", mapped);
	free(mapped);
	mapped = NULL;
	expect("mapped-kept", "held", mapped_kept);
}

static int wait_for(const char *word)
{
	char line[32];

	return fgets(line, sizeof(line), stdin) && strncmp(line, word, strlen(word)) == 0;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 0;

	if (nr > MAX_BLOCKS)
		return 2;
	free(malloc(1));
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("waits");
	fflush(stdout);
	if (!wait_for("go"))
		return 1;
	allocate(nr);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!wait_for("later"))
		return 1;
	change(nr);
	wait_for_line();
	return 0;
}
