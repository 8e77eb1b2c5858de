// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many threads that use the heap as fast as they can, from stacks of varied depth, on blocks of
 * their own and on blocks that they hand to each other. Nothing here serialises them but the
 * allocator: each thread counts for itself, and the counts are added up in the end.
 *
 *   --threads N (8)     of each process
 *   --processes N (0)   forked after the beginning; 0: the first process does the work
 *   --ms N (2000)       the time that each thread works, but not longer than
 *   --rounds N          (1000000) so many calls
 *   --depth N (40)      of the deepest stack
 *   --mappings          maps and unmaps memory, too
 *   --min N, --max N    matching_allocations and matching_frees are those of blocks of such sizes,
 *                       and of what realloc makes of them
 *
 * Exact: every count, held blocks by size, mappings_left, mappings_left_bytes. With --wait the
 * first process's threads are there before the beginning and stay; otherwise they end before the
 * process.
 */
#include "truth.h"

#include <time.h>

#define MAX_THREADS   128
#define MAX_PROCESSES 64
#define NR_BLOCKS     64  /* of a thread */
#define NR_SHARED     128 /* of a process */
#define NR_MAPPINGS   8	  /* of a thread */
#define PAGE_BYTES    4096

enum { MATCHING_ALLOCATIONS = TRUTH_NR_COUNTERS, MATCHING_FREES, NR_COUNTS };

/* The start of every block. */
struct header {
	uint32_t size_bytes;
	bool matching;
};

struct mapping {
	void *start;
	size_t size_bytes;
};

struct runner {
	struct truth_thread thread;
	uint32_t seed;
	long counts[NR_COUNTS];
	struct header *blocks[NR_BLOCKS];
	struct mapping mappings[NR_MAPPINGS];
};

static long nr_threads, work_ms, nr_rounds, max_depth, min_bytes, max_bytes;
static bool with_mappings, joined;
static struct runner runners[MAX_THREADS];
static struct header *_Atomic shared[NR_SHARED];
static pthread_barrier_t go, done;
static _Atomic long *sums; /* of all processes: MATCHING_ALLOCATIONS ... mappings_left_bytes */

enum { SUM_MATCHING_ALLOCATIONS, SUM_MATCHING_FREES, SUM_LEFT, SUM_LEFT_BYTES, NR_SUMS };

static uint32_t next_random(struct runner *runner, uint32_t below)
{
	runner->seed = runner->seed * 1103515245u + 12345u;
	return (runner->seed >> 8) % below;
}

static size_t random_size(struct runner *runner)
{
	uint32_t kind = next_random(runner, 100);

	if (kind == 0)
		return 140000 + next_random(runner, 60000); /* glibc maps it */
	return sizeof(struct header) + next_random(runner, kind < 20 ? 6000 : 600);
}

static struct header *gained(struct runner *runner, void *p, size_t size_bytes, bool matching)
{
	struct header *block = p;

	if (!block)
		truth_die("heap_stress: out of memory\n");
	block->size_bytes = (uint32_t)size_bytes;
	block->matching =
		matching || (size_bytes >= (size_t)min_bytes && size_bytes <= (size_t)max_bytes);
	runner->counts[TRUTH_ALLOCATIONS]++;
	runner->counts[MATCHING_ALLOCATIONS] += block->matching;
	return block;
}

static void lost(struct runner *runner, const struct header *block)
{
	runner->counts[TRUTH_FREES]++;
	runner->counts[MATCHING_FREES] += block->matching;
}

static struct header *allocate(struct runner *runner)
{
	size_t size_bytes = random_size(runner);
	void *block;

	switch (next_random(runner, 16)) {
	case 0:
		runner->counts[TRUTH_POSIX_MEMALIGN]++;
		if (posix_memalign(&block, 64, size_bytes))
			block = NULL;
		break;
	case 1:
		runner->counts[TRUTH_ALIGNED_ALLOC]++;
		block = aligned_alloc(128, size_bytes);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		runner->counts[TRUTH_CALLOC]++;
		block = calloc(1, size_bytes);
		break;
	default:
		runner->counts[TRUTH_MALLOC]++;
		block = malloc(size_bytes);
	}
	return gained(runner, block, size_bytes, false);
}

static struct header *reallocate(struct runner *runner, struct header *block)
{
	size_t size_bytes = random_size(runner);
	bool matching = block->matching;

	runner->counts[TRUTH_REALLOC]++;
	runner->counts[TRUTH_FREES_BY_REALLOC]++;
	lost(runner, block);
	return gained(runner, realloc(block, size_bytes), size_bytes, matching);
}

static void release(struct runner *runner, struct header *block)
{
	runner->counts[TRUTH_FREE]++;
	if (block)
		lost(runner, block);
	else
		runner->counts[TRUTH_NULL_FREES]++;
	free(block);
}

static void map_or_unmap(struct runner *runner)
{
	struct mapping *mapping = &runner->mappings[next_random(runner, NR_MAPPINGS)];

	if (mapping->start) {
		munmap(mapping->start, mapping->size_bytes);
		mapping->start = NULL;
		return;
	}
	mapping->size_bytes = PAGE_BYTES * (1 + (size_t)next_random(runner, 8));
	mapping->start =
		mmap(NULL, mapping->size_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapping->start == MAP_FAILED)
		truth_die("heap_stress: cannot map memory\n");
}

static void use_heap(struct runner *runner)
{
	struct header **block = &runner->blocks[next_random(runner, NR_BLOCKS)];
	uint32_t kind = next_random(runner, 64);

	if (with_mappings && kind < 8)
		map_or_unmap(runner);
	else if (kind == 63)
		release(runner, NULL);
	else if (kind < 16) /* perhaps another thread's */
		*block = atomic_exchange(&shared[next_random(runner, NR_SHARED)], *block);
	else if (!*block)
		*block = allocate(runner);
	else if (kind < 32)
		*block = reallocate(runner, *block);
	else {
		release(runner, *block);
		*block = NULL;
	}
}

static void descend_again(struct runner *runner, uint32_t path, long depth);

static void descend(struct runner *runner, uint32_t path, long depth)
{
	if (depth <= 0)
		use_heap(runner);
	else if (path & 1)
		descend(runner, path >> 1, depth - 1);
	else
		descend_again(runner, path >> 1, depth - 1);
}

static void descend_again(struct runner *runner, uint32_t path, long depth)
{
	if (depth <= 0)
		use_heap(runner);
	else
		descend(runner, path, depth - 1);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *run(void *arg)
{
	struct runner *runner = arg;
	long end_ms;

	pthread_barrier_wait(&go);
	end_ms = now_ms() + work_ms;
	for (long i = 0; i < nr_rounds; i++) {
		descend(runner, next_random(runner, 8), next_random(runner, (uint32_t)max_depth));
		/* The thread that wakes up preempts another one, anywhere in its code. */
		if (next_random(runner, 32) == 0)
			nanosleep(&(struct timespec){.tv_nsec = next_random(runner, 200000)}, NULL);
		if (i % 16 == 0 && now_ms() >= end_ms)
			break;
	}
	pthread_barrier_wait(&done);
	while (!joined)
		pause();
	return NULL;
}

static void start_threads(uint32_t seed)
{
	joined = truth.counting;
	pthread_barrier_init(&go, NULL, (unsigned int)nr_threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned int)nr_threads + 1);
	for (long i = 0; i < nr_threads; i++) {
		runners[i].seed = seed * 1000 + (uint32_t)i;
		truth_thread_start(&runners[i].thread, run, &runners[i]);
	}
}

static void add_held(const struct header *block)
{
	if (block)
		truth_count_held(block->size_bytes, 1);
}

static void add_counts(const struct runner *runner)
{
	for (int i = 0; i < TRUTH_NR_COUNTERS; i++)
		truth_count((enum truth_counter)i, runner->counts[i]);
	atomic_fetch_add(&sums[SUM_MATCHING_ALLOCATIONS], runner->counts[MATCHING_ALLOCATIONS]);
	atomic_fetch_add(&sums[SUM_MATCHING_FREES], runner->counts[MATCHING_FREES]);
	for (int i = 0; i < NR_BLOCKS; i++)
		add_held(runner->blocks[i]);
	for (int i = 0; i < NR_MAPPINGS; i++) {
		if (!runner->mappings[i].start)
			continue;
		atomic_fetch_add(&sums[SUM_LEFT], 1);
		atomic_fetch_add(&sums[SUM_LEFT_BYTES], (long)runner->mappings[i].size_bytes);
	}
}

/* The work of a process. */
static void run_threads(void)
{
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	for (long i = 0; i < nr_threads; i++)
		add_counts(&runners[i]);
	for (int i = 0; i < NR_SHARED; i++)
		add_held(atomic_load(&shared[i]));
	for (long i = 0; joined && i < nr_threads; i++)
		truth_thread_join(&runners[i].thread);
}

static void run_processes(long nr_processes)
{
	pid_t pids[MAX_PROCESSES];
	int status;

	for (long i = 0; i < nr_processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			truth_die("heap_stress: cannot fork\n");
		if (pids[i] == 0) {
			truth_forked();
			start_threads((uint32_t)i + 1);
			run_threads();
			_exit(0);
		}
	}
	for (long i = 0; i < nr_processes; i++) {
		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		if (status)
			truth_die("heap_stress: a child failed\n");
	}
}

static void parse_options(int argc, char **argv)
{
	nr_threads = truth_option(argc, argv, "--threads", 8);
	work_ms = truth_option(argc, argv, "--ms", 2000);
	nr_rounds = truth_option(argc, argv, "--rounds", 1000000);
	max_depth = truth_option(argc, argv, "--depth", 40);
	min_bytes = truth_option(argc, argv, "--min", 0);
	max_bytes = truth_option(argc, argv, "--max", 0);
	with_mappings = truth_flag(argc, argv, "--mappings");
	if (nr_threads < 1 || nr_threads > MAX_THREADS || max_depth < 1)
		truth_die("heap_stress: no such number of threads, or no depth\n");
	sums = mmap(NULL, NR_SUMS * sizeof(*sums), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		truth_die("heap_stress: no shared memory\n");
}

int main(int argc, char **argv)
{
	long nr_processes = truth_option(argc, argv, "--processes", 0);

	if (nr_processes > MAX_PROCESSES)
		truth_die("heap_stress: too many processes\n");
	parse_options(argc, argv);
	truth_init(argc, argv);
	if (!nr_processes)
		start_threads(0);
	truth_begin();
	if (nr_processes)
		run_processes(nr_processes);
	else
		run_threads();
	truth_print();
	truth_tell("matching_allocations", sums[SUM_MATCHING_ALLOCATIONS]);
	truth_tell("matching_frees", sums[SUM_MATCHING_FREES]);
	truth_tell("mappings_left", sums[SUM_LEFT]);
	truth_tell("mappings_left_bytes", sums[SUM_LEFT_BYTES]);
	return 0;
}
