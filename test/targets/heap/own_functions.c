// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions that jemalloc, tcmalloc and mimalloc have besides C's: all that the process has,
 * found by dlsym(), so that one of these allocators can be preloaded. Prints "truth functions N":
 * how many there were.
 *
 * Exact: allocations, frees, and what is held. Calls of single functions are not counted.
 */
#include "truth.h"

#include <dlfcn.h>

#define SIZE_BYTES 304
#define COUNT	   4
#define ALIGNMENT  16
#define ROUNDS	   8

enum deed { ALLOCATES, REALLOCATES, RELEASES };

/* Arguments: s size, n a count, a alignment, f flags, p the block, h mimalloc's heap, r where the
 * block goes. */
static const struct {
	const char *name;
	enum deed deed;
	const char *arguments;
} functions[] = {
	{"mallocx", ALLOCATES, "sf"},
	{"rallocx", REALLOCATES, "psf"},
	{"dallocx", RELEASES, "pf"},
	{"sdallocx", RELEASES, "psf"},
	{"tc_malloc", ALLOCATES, "s"},
	{"tc_malloc_skip_new_handler", ALLOCATES, "s"},
	{"tc_calloc", ALLOCATES, "ns"},
	{"tc_memalign", ALLOCATES, "as"},
	{"tc_posix_memalign", ALLOCATES, "ras"},
	{"tc_valloc", ALLOCATES, "s"},
	{"tc_pvalloc", ALLOCATES, "s"},
	{"tc_new", ALLOCATES, "s"},
	{"tc_newarray", ALLOCATES, "s"},
	{"tc_new_nothrow", ALLOCATES, "sf"},
	{"tc_new_aligned", ALLOCATES, "sa"},
	{"tc_newarray_aligned_nothrow", ALLOCATES, "saf"},
	{"tc_realloc", REALLOCATES, "ps"},
	{"tc_free", RELEASES, "p"},
	{"tc_cfree", RELEASES, "p"},
	{"tc_free_sized", RELEASES, "ps"},
	{"tc_delete", RELEASES, "p"},
	{"tc_deletearray_sized", RELEASES, "ps"},
	{"tc_delete_nothrow", RELEASES, "pf"},
	{"tc_delete_aligned", RELEASES, "pa"},
	{"tc_delete_sized_aligned", RELEASES, "psa"},
	{"mi_malloc", ALLOCATES, "s"},
	{"mi_zalloc", ALLOCATES, "s"},
	{"mi_malloc_small", ALLOCATES, "s"},
	{"mi_zalloc_small", ALLOCATES, "s"},
	{"mi_calloc", ALLOCATES, "ns"},
	{"mi_mallocn", ALLOCATES, "ns"},
	{"mi_malloc_aligned", ALLOCATES, "sa"},
	{"mi_zalloc_aligned", ALLOCATES, "sa"},
	{"mi_calloc_aligned", ALLOCATES, "nsa"},
	{"mi_posix_memalign", ALLOCATES, "ras"},
	{"mi_memalign", ALLOCATES, "as"},
	{"mi_aligned_alloc", ALLOCATES, "as"},
	{"mi_valloc", ALLOCATES, "s"},
	{"mi_pvalloc", ALLOCATES, "s"},
	{"mi_new", ALLOCATES, "s"},
	{"mi_new_n", ALLOCATES, "ns"},
	{"mi_new_nothrow", ALLOCATES, "s"},
	{"mi_new_aligned", ALLOCATES, "sa"},
	{"mi_heap_malloc", ALLOCATES, "hs"},
	{"mi_heap_malloc_small", ALLOCATES, "hs"},
	{"mi_heap_zalloc", ALLOCATES, "hs"},
	{"mi_heap_calloc", ALLOCATES, "hns"},
	{"mi_heap_mallocn", ALLOCATES, "hns"},
	{"mi_heap_malloc_aligned", ALLOCATES, "hsa"},
	{"mi_realloc", REALLOCATES, "ps"},
	{"mi_reallocn", REALLOCATES, "pns"},
	{"mi_reallocarray", REALLOCATES, "pns"},
	{"mi_reallocf", REALLOCATES, "ps"},
	{"mi_rezalloc", REALLOCATES, "ps"},
	{"mi_recalloc", REALLOCATES, "pns"},
	{"mi_realloc_aligned", REALLOCATES, "psa"},
	{"mi_heap_realloc", REALLOCATES, "hps"},
	{"mi_heap_reallocn", REALLOCATES, "hpns"},
	{"mi_new_realloc", REALLOCATES, "ps"},
	{"mi_new_reallocn", REALLOCATES, "pns"},
	{"mi_free", RELEASES, "p"},
	{"mi_cfree", RELEASES, "p"},
	{"mi_free_size", RELEASES, "ps"},
	{"mi_free_aligned", RELEASES, "pa"},
	{"mi_free_size_aligned", RELEASES, "psa"},
};

typedef uintptr_t any_function(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* The bytes that a call with these arguments requests. */
static size_t wanted_bytes(const char *arguments, size_t size_bytes)
{
	return strchr(arguments, 'n') ? COUNT * size_bytes : size_bytes;
}

static uintptr_t argument(char kind, void *block, size_t size_bytes, void **ret_block)
{
	void *(*heap)(void);

	switch (kind) {
	case 's':
		return size_bytes;
	case 'n':
		return COUNT;
	case 'a':
		return ALIGNMENT;
	case 'p':
		return (uintptr_t)block;
	case 'h':
		heap = (void *(*)(void))dlsym(RTLD_DEFAULT, "mi_heap_get_default");
		return heap ? (uintptr_t)heap() : 0;
	case 'r':
		return (uintptr_t)ret_block;
	default:
		return 0;
	}
}

/* Returns the new block, if the function makes one. */
static void *call(any_function *function, const char *arguments, void *block, size_t size_bytes)
{
	uintptr_t values[4] = {0}, value;
	void *stored = NULL;

	for (int i = 0; arguments[i]; i++)
		values[i] = argument(arguments[i], block, size_bytes, &stored);
	value = function(values[0], values[1], values[2], values[3]);
	return arguments[0] == 'r' ? stored : (void *)value;
}

static void *allocate(any_function *function, const char *arguments)
{
	void *block = call(function, arguments, NULL, SIZE_BYTES);

	truth_gained(block, wanted_bytes(arguments, SIZE_BYTES));
	return block;
}

static void *reallocate(any_function *function, const char *arguments, size_t size_bytes)
{
	void *block = t_malloc(SIZE_BYTES), *moved;
	struct truth_block before = truth_reallocating(block);

	moved = call(function, arguments, block, size_bytes);
	truth_reallocated(block, &before, moved, wanted_bytes(arguments, size_bytes));
	return moved;
}

static void release(any_function *function, const char *arguments)
{
	void *block = t_malloc(SIZE_BYTES);

	truth_freeing(block);
	call(function, arguments, block, SIZE_BYTES);
}

static void use(any_function *function, size_t nth, int round)
{
	const char *arguments = functions[nth].arguments;
	void *block = NULL;

	if (functions[nth].deed == RELEASES) {
		release(function, arguments);
		return;
	}
	if (functions[nth].deed == ALLOCATES)
		block = allocate(function, arguments);
	else
		block = reallocate(function, arguments, round % 2 ? 3000 : 40);
	if (round % 4)
		t_free(block); /* every fourth block stays held */
}

int main(int argc, char **argv)
{
	any_function *found[sizeof(functions) / sizeof(functions[0])];
	long nr = 0;

	truth_init(argc, argv);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		found[i] = (any_function *)dlsym(RTLD_DEFAULT, functions[i].name);
		nr += found[i] != NULL;
	}
	truth_begin();
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			if (found[i])
				use(found[i], i, round);
	truth_print();
	truth_tell("functions", nr);
	return 0;
}
