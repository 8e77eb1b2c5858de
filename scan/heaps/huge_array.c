/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/huge_array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

void *huge_array_alloc(size_t nr, size_t size, int byte)
{
	void *array = NULL;
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes) || bytes > SIZE_MAX - HUGE_BYTES)
		return NULL;
	/* What is behind the last huge page is in small ones. */
	if (bytes < HUGE_BYTES)
		array = malloc(bytes);
	else if (posix_memalign(&array, HUGE_BYTES, bytes))
		return NULL;
	if (!array)
		return NULL;
	if (bytes >= HUGE_BYTES)
		madvise(array, bytes & ~(HUGE_BYTES - 1), MADV_HUGEPAGE);
	return memset(array, byte, bytes);
}
