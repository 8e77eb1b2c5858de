/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first input of fuzz_elf: an allocator in C and C++, with marks and unwind information. */
#include "../../include/leaktools/leak_probes.h"

void *malloc(unsigned long bytes);
void *calloc(unsigned long nr, unsigned long bytes);
void *realloc(void *block, unsigned long bytes);
int posix_memalign(void **ret, unsigned long alignment, unsigned long bytes);
void free(void *block);
void *_Znwm(unsigned long bytes);
void _ZdlPv(void *block);

static char heap[65536];
static unsigned long used;

void *malloc(unsigned long bytes)
{
	if (bytes > sizeof(heap) - used)
		return 0;
	used += bytes;
	LEAK_MARK("allocated");
	return heap + used - bytes;
}

void *calloc(unsigned long nr, unsigned long bytes)
{
	return malloc(nr * bytes);
}

void *realloc(void *block, unsigned long bytes)
{
	LEAK_ALLOC(block, bytes);
	return malloc(bytes);
}

int posix_memalign(void **ret, unsigned long alignment, unsigned long bytes)
{
	*ret = malloc(bytes + alignment);
	return 0;
}

void free(void *block)
{
	LEAK_FREE(block);
}

void *_Znwm(unsigned long bytes)
{
	void *block = malloc(bytes);

	if (!block)
		__builtin_trap();
	return block;
}

void _ZdlPv(void *block)
{
	free(block);
}
