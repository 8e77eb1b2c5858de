// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every function of the allocator in a fixed pseudo-random order, in one thread: small, large and
 * mmapped blocks, requests that fail, NULL frees, realloc in all its uses. Two runs with the same
 * addresses make the same calls with the same arguments. --rounds N (2000).
 *
 * Exact: every count; aligned_alloc and memalign as in aligned.c.
 */
#include "truth.h"

#define NR_BLOCKS 256

static uint32_t seed = 20;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % below;
}

/* Mostly small sizes, sometimes one that is mmapped, and sometimes one that cannot be allocated. */
static size_t random_size(void)
{
	uint32_t kind = next_random(100);

	if (kind == 0)
		return PTRDIFF_MAX;
	if (kind < 3)
		return 200000 + next_random(100000);
	return kind < 30 ? next_random(20000) : next_random(600);
}

static bool with_pvalloc; /* jemalloc has none, and could not free a block of libc's */

static void *allocate(void)
{
	size_t alignment = (size_t)8 << next_random(8);
	void *block = NULL;

	switch (next_random(8)) {
	case 0:
		return t_calloc(1 + next_random(8), random_size() / 8);
	case 1:
		return t_realloc(NULL, random_size());
	case 2:
		return t_memalign(alignment, random_size());
	case 3:
		return t_posix_memalign(&block, alignment, random_size()) ? NULL : block;
	case 4:
		return t_aligned_alloc(alignment, random_size());
	case 5:
		return next_random(2) || !with_pvalloc ? t_valloc(random_size())
						       : t_pvalloc(random_size());
	default:
		return t_malloc(random_size());
	}
}

int main(int argc, char **argv)
{
	void *blocks[NR_BLOCKS] = {NULL};
	long nr_rounds = truth_option(argc, argv, "--rounds", 2000);

	truth_init(argc, argv);
	with_pvalloc = truth_option(argc, argv, "--pvalloc", 1);
	truth_begin();
	for (long i = 0; i < nr_rounds; i++) {
		void **block = &blocks[next_random(NR_BLOCKS)];

		if (*block && next_random(3) == 0) {
			size_t size_bytes = 1 + random_size();
			void *moved = t_realloc(*block, size_bytes);

			*block = moved ? moved : *block;
		} else {
			t_free(*block);
			*block = allocate();
		}
	}
	truth_print();
	return 0;
}
