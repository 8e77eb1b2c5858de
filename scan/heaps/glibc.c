/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc.h"

#include <stdarg.h>
#include <stdio.h>

void glibc_doubt(struct glibc *glibc, const char *format, ...)
{
	struct heap *heap = glibc->heap;
	va_list args;

	heap->is_whole = false;
	if (heap->why_not[0])
		return;
	va_start(args, format);
	vsnprintf(heap->why_not, sizeof(heap->why_not), format, args);
	va_end(args);
}
