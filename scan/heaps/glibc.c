/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc.h"

#include <stdarg.h>
#include <stdio.h>

bool glibc_take_steps(struct glibc *glibc, uint64_t nr)
{
	if (nr <= glibc->steps_left) {
		glibc->steps_left -= nr;
		return true;
	}
	glibc->steps_left = 0;
	glibc_doubt(glibc, "its lists of chunks do not end");
	return false;
}

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
