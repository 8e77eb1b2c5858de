// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A second libc loaded by dlmopen(), in a namespace of its own: the same file, or with "--libc
 * PATH" another. Each libc's own functions allocate and release its blocks.
 *
 * Exact: every count from truth_begin() on.
 */
#include "truth.h"

#include <dlfcn.h>

static void *(*other_malloc)(size_t size_bytes);
static void (*other_free)(void *block);

static void load(const char *path)
{
	void *libc = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);

	if (!libc)
		truth_die("two_libcs: no second libc\n");
	other_malloc = (void *(*)(size_t))dlsym(libc, "malloc");
	other_free = (void (*)(void *))dlsym(libc, "free");
	if (!other_malloc || other_malloc == malloc)
		truth_die("two_libcs: it is not a second one\n");
}

static void *allocate_there(size_t size_bytes)
{
	void *block = other_malloc(size_bytes);

	truth_count(TRUTH_MALLOC, 1);
	truth_gained(block, size_bytes);
	return block;
}

static void release_there(void *block)
{
	truth_freeing(block);
	other_free(block);
}

static void one_round(int nth)
{
	void *here = t_malloc(100), *there = allocate_there(200);

	here = t_realloc(here, 3000);
	if (nth % 4)
		release_there(there); /* every fourth block stays held */
	t_free(here);
	t_malloc(50);
}

int main(int argc, char **argv)
{
	const char *path = "libc.so.6";

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--libc") == 0)
			path = argv[i + 1];
	truth_init(argc, argv);
	load(path);
	truth_begin();
	for (int i = 0; i < 40; i++)
		one_round(i);
	truth_print();
	return 0;
}
