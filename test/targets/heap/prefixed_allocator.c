// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that contains an allocator besides libc's, built with a prefix: app_malloc() and so on,
 * and jemalloc's app_mallctlnametomib(), which shows the prefix. One of its functions is indirect:
 * its code is chosen when the program is loaded.
 *
 * Exact: every count from truth_begin() on.
 */
#include "truth.h"

#define SLOT_BYTES 4096
#define NR_SLOTS   256

static char slots[NR_SLOTS][SLOT_BYTES] __attribute__((aligned(64)));
static bool is_used[NR_SLOTS];

/* Global functions, like those of real allocators. */
void *app_malloc(size_t size_bytes);
void *app_calloc(size_t n, size_t size_bytes);
void *app_realloc(void *block, size_t size_bytes);
void app_free(void *block);
void app_sdallocx(void *block, size_t size_bytes, int flags);
int app_mallctlnametomib(const char *name, size_t *mib, size_t *nr);

void *app_malloc(size_t size_bytes)
{
	for (int i = 0; i < NR_SLOTS && size_bytes <= SLOT_BYTES; i++) {
		if (is_used[i])
			continue;
		is_used[i] = true;
		return slots[i];
	}
	return NULL;
}

void *app_calloc(size_t n, size_t size_bytes)
{
	void *block = app_malloc(n * size_bytes);

	return block ? memset(block, 0, n * size_bytes) : NULL;
}

static void give_back(void *block)
{
	is_used[((char *)block - slots[0]) / SLOT_BYTES] = false;
}

void app_free(void *block)
{
	if (block)
		give_back(block);
}

void *app_realloc(void *block, size_t size_bytes)
{
	void *moved = app_malloc(size_bytes);

	if (!moved)
		return NULL;
	memcpy(moved, block, 64);
	app_free(block);
	return moved;
}

static void sdallocx_one_way(void *block, size_t size_bytes, int flags)
{
	give_back(block);
}

static void sdallocx_another_way(void *block, size_t size_bytes, int flags)
{
	memset(block, 0, size_bytes);
	give_back(block);
}

typedef void sdallocx_function(void *block, size_t size_bytes, int flags);

/* clang does not see that this is used. */
__attribute__((used)) static sdallocx_function *resolve_sdallocx(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse2") ? sdallocx_another_way : sdallocx_one_way;
#else
	return __builtin_return_address(0) ? sdallocx_another_way : sdallocx_one_way;
#endif
}

void app_sdallocx(void *block, size_t size_bytes, int flags)
	__attribute__((ifunc("resolve_sdallocx")));

int app_mallctlnametomib(const char *name, size_t *mib, size_t *nr)
{
	return ENOENT;
}

static void *gain(void *block, size_t size_bytes)
{
	truth_gained(block, size_bytes);
	return block;
}

static void one_round(void)
{
	struct truth_block before;
	void *block, *moved;

	block = gain(app_malloc(100), 100);
	before = truth_reallocating(block);
	moved = app_realloc(block, 3000);
	truth_reallocated(block, &before, moved, 3000);
	truth_freeing(moved);
	app_free(moved);
	block = gain(app_calloc(3, 50), 150);
	truth_freeing(block);
	app_sdallocx(block, 150, 0);
	gain(app_malloc(77), 77); /* held */
	t_free(t_malloc(500));
	t_malloc(501); /* held */
}

int main(int argc, char **argv)
{
	truth_init(argc, argv);
	truth_begin();
	for (int i = 0; i < 40; i++)
		one_round();
	truth_print();
	return 0;
}
