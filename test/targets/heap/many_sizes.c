// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Blocks of many sizes from every function of the allocator, in several threads and, with
 * --children N, in as many forked processes with threads of their own. They test a filter by size,
 * which --min and --max give. Half of the sizes are within 48 bytes of the range, so that they
 * share chunks with it; blocks are split, merged and shrunk as the heap fills and empties.
 *
 * Exact: held blocks by size, those of 64 KiB and more without children. Also printed:
 * matching_FUNCTION, the calls that ask for a size in the range (including what one of glibc's
 * functions asks of another).
 */
#include "truth.h"

#define MAX_THREADS 16
#define NR_BLOCKS   150

static const enum truth_counter told[] = {
	TRUTH_MALLOC,	TRUTH_CALLOC,	      TRUTH_REALLOC, TRUTH_ALIGNED_ALLOC,
	TRUTH_MEMALIGN, TRUTH_POSIX_MEMALIGN, TRUTH_VALLOC,
};

static size_t min_bytes, max_bytes;
static long nr_rounds, nr_threads;
static _Atomic long *matching; /* by enum truth_counter; shared by all processes */

struct runner {
	struct truth_thread thread;
	uint32_t seed;
};

static uint32_t next_random(struct runner *runner, uint32_t below)
{
	runner->seed = runner->seed * 1103515245u + 12345u;
	return (runner->seed >> 8) % below;
}

static size_t random_size(struct runner *runner)
{
	uint32_t kind = next_random(runner, 20);
	size_t low = min_bytes > 48 ? min_bytes - 48 : 1;

	if (kind < 3)
		return min_bytes + next_random(runner, (uint32_t)(max_bytes - min_bytes + 1));
	if (kind < 10)
		return low + next_random(runner, (uint32_t)(max_bytes + 48 - low));
	if (kind == 10)
		return 140000 + next_random(runner, 100000);
	return 400 + next_random(runner, kind < 14 ? 9000 : 900);
}

static void note(enum truth_counter function, size_t size_bytes)
{
	if (size_bytes >= min_bytes && size_bytes <= max_bytes)
		atomic_fetch_add(&matching[function], 1);
}

static void *aligned(struct runner *runner, uint32_t kind, size_t size)
{
	size_t alignment = (size_t)8 << next_random(runner, 8);
	void *block = NULL;

	if (alignment <= 2 * sizeof(size_t))
		note(TRUTH_MALLOC, size);
	switch (kind) {
	case 0:
		note(TRUTH_ALIGNED_ALLOC, size);
		return t_aligned_alloc(alignment, size);
	case 1:
		note(TRUTH_MEMALIGN, size);
		return t_memalign(alignment, size);
	default:
		note(TRUTH_POSIX_MEMALIGN, size);
		return t_posix_memalign(&block, alignment, size) ? NULL : block;
	}
}

static void *allocate(struct runner *runner)
{
	size_t size = random_size(runner), count;
	uint32_t kind = next_random(runner, 9);

	switch (kind) {
	case 0:
	case 1:
	case 2:
		return aligned(runner, kind, size);
	case 3:
		count = size % 5 == 0 ? 5 : 1;
		note(TRUTH_CALLOC, size);
		return t_calloc(count, size / count);
	case 4:
		note(TRUTH_REALLOC, size);
		note(TRUTH_MALLOC, size);
		return t_realloc(NULL, size);
	case 5:
		if (next_random(runner, 8))
			break;
		note(TRUTH_VALLOC, size);
		return t_valloc(size);
	}
	note(TRUTH_MALLOC, size);
	return t_malloc(size);
}

static void *run(void *arg)
{
	struct runner *runner = arg;
	void *blocks[NR_BLOCKS] = {NULL};

	for (long i = 0; i < nr_rounds; i++) {
		void **block = &blocks[next_random(runner, NR_BLOCKS)];
		size_t size = random_size(runner);

		if (!*block) {
			*block = allocate(runner);
		} else if (next_random(runner, 3)) {
			t_free(*block);
			*block = NULL;
		} else {
			note(TRUTH_REALLOC, size);
			*block = t_realloc(*block, size);
		}
		if (next_random(runner, 50) == 0)
			*block = NULL; /* leaked if it was a block */
	}
	for (size_t i = 0; i < NR_BLOCKS; i++)
		if (i % 5)
			t_free(blocks[i]);
	return NULL;
}

static void run_threads(uint32_t seed)
{
	static struct runner runners[MAX_THREADS];

	for (long i = 0; i < nr_threads; i++) {
		runners[i].seed = seed * MAX_THREADS + (uint32_t)i;
		truth_thread_start(&runners[i].thread, run, &runners[i]);
	}
	for (long i = 0; i < nr_threads; i++)
		truth_thread_join(&runners[i].thread);
}

/* Prints what truth_print() does not, of this process. */
static void tell_large(void)
{
	for (size_t i = 0; i < TRUTH_NR_BLOCKS; i++) {
		const struct truth_block *block = &truth.blocks[i];
		struct truth_line line = {.len = 0};

		if (block->state != TRUTH_HELD || block->size_bytes < TRUTH_SIZE_LIMIT)
			continue;
		truth_line_text(&line, "truth held_");
		truth_line_number(&line, (long)block->size_bytes);
		truth_line_text(&line, " 1");
		truth_line_write(&line);
	}
}

static void tell_matching(void)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		char name[64] = "matching_";

		strcat(name, truth_names[told[i]]);
		truth_tell(name, atomic_load(&matching[told[i]]));
	}
}

int main(int argc, char **argv)
{
	long nr_children;

	truth_init(argc, argv);
	min_bytes = (size_t)truth_option(argc, argv, "--min", 3072);
	max_bytes = (size_t)truth_option(argc, argv, "--max", 3072);
	nr_rounds = truth_option(argc, argv, "--rounds", 3000);
	nr_threads = truth_option(argc, argv, "--threads", 3);
	nr_children = truth_option(argc, argv, "--children", 0);
	if (nr_threads > MAX_THREADS)
		truth_die("many_sizes: at most 16 threads\n");
	matching = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (matching == MAP_FAILED)
		truth_die("many_sizes: no shared memory\n");
	truth_begin();
	for (long i = 0; i < nr_children; i++) {
		pid_t child = fork();

		if (child < 0)
			truth_die("many_sizes: cannot fork\n");
		if (child == 0) {
			truth_forked();
			run_threads((uint32_t)i + 1);
			_exit(0);
		}
	}
	run_threads(0);
	while (wait(NULL) > 0)
		;
	truth_print();
	tell_large();
	tell_matching();
	return 0;
}
