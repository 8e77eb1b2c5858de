// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every way in which glibc's malloc ends: a block from the thread's cache; from the arena, with one
 * thread and with several, after waiting for another thread's lock; from the main arena when the
 * thread's own is exhausted; by mmap; and NULL, for a size above the limit or for lack of memory.
 * Also, a jump into malloc's code with another return address.
 *
 * Exact: every count but free, to which each thread's exit adds.
 */
#include "truth.h"

#include <fcntl.h>
#include <sys/resource.h>

#define ROOM_BYTES   (24u << 20)
#define LARGE_BYTES  (200u << 10)
#define MEDIUM_BYTES (100u << 10)
#define NR_BLOCKS    1500 /* more blocks than an arena's heap of 64 MiB holds */
#define NR_THREADS   4

static void *blocks[NR_BLOCKS];

/*
 * Sizes larger than an object may be, than the address space, and than the memory. Volatile hides
 * them from the compiler.
 */
static const volatile size_t too_big[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, PTRDIFF_MAX - 4096};

/* Sizes that the cache holds, and larger ones: each first from the arena, then from the cache. */
static void small_sizes(void)
{
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 200; i++)
			blocks[i] = t_malloc(i * 11);
		for (size_t i = 0; i < 200; i++)
			t_free(blocks[i]);
	}
	t_malloc(3072);
}

static void large_and_none(void)
{
	void *large = t_malloc(LARGE_BYTES);

	for (size_t i = 0; i < 3; i++)
		t_malloc(too_big[i]);
	t_free(large);
	/* All blocks have this alignment, so this jumps to malloc. */
	t_free(t_aligned_alloc(16, 500));
	t_memalign(8, 3072);
}

static void *compete(void *arg)
{
	void *kept[20];

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < 20; i++)
			kept[i] = t_malloc(1500 + i * 16);
		for (size_t i = 0; i < 20; i++)
			t_free(kept[i]);
	}
	large_and_none();
	return NULL;
}

/* Fills the thread's arena, and then the main arena, until there is no memory left. */
static void *exhaust(void *arg)
{
	size_t nr = 0;

	while (nr < NR_BLOCKS && (blocks[nr] = t_malloc(MEDIUM_BYTES)))
		nr++;
	if (nr == NR_BLOCKS)
		truth_die("malloc_ends: there is no end of memory\n");
	while (nr > 0)
		t_free(blocks[--nr]);
	return NULL;
}

static void limit_memory(void)
{
	struct rlimit limit;
	unsigned long pages = 0;
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		truth_die("malloc_ends: cannot read /proc/self/statm\n");
	close(fd);
	pages = strtoul(text, NULL, 10);
	limit.rlim_cur = limit.rlim_max = pages * (unsigned long)getpagesize() + ROOM_BYTES;
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		truth_die("malloc_ends: cannot limit the address space\n");
}

int main(int argc, char **argv)
{
	struct truth_thread threads[NR_THREADS];

	truth_init(argc, argv);
	/* Makes the threads compete for the same arenas. */
	mallopt(M_ARENA_MAX, 2);
	truth_begin();
	small_sizes();
	large_and_none();
	for (int i = 0; i < NR_THREADS; i++)
		truth_thread_start(&threads[i], compete, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		truth_thread_join(&threads[i]);
	small_sizes();
	limit_memory();
	mallopt(M_MMAP_MAX, 0);
	truth_thread_start(&threads[0], exhaust, NULL);
	truth_thread_join(&threads[0]);
	small_sizes();
	truth_print();
	return 0;
}
