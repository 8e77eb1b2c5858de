// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An allocator to load by dlopen(): malloc, free and calloc from its own pool, which never reuses
 * memory.
 */
#include <stdlib.h>

#define POOL_BYTES (8u << 20)
#define ALIGNMENT  16

static _Alignas(ALIGNMENT) char pool[POOL_BYTES];
static size_t used;

static void *take(size_t size_bytes)
{
	size_t at = __atomic_fetch_add(&used, (size_bytes + ALIGNMENT) & -(size_t)ALIGNMENT,
				       __ATOMIC_RELAXED);

	return at + size_bytes <= POOL_BYTES ? pool + at : NULL;
}

void *malloc(size_t size_bytes)
{
	return take(size_bytes);
}

/* The pool is zero, and used once. */
void *calloc(size_t n, size_t size_bytes)
{
	return take(n * size_bytes);
}

void free(void *p)
{
}
