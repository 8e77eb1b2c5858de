/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/heap_read.h"

#include "scan/heaps/glibc_heap.h"

#include <stdlib.h>

static int compare_ranges(const void *a, const void *b)
{
	const struct heap_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int read_traced(struct heap *heap, const struct traced_source *source)
{
	struct traced_blocks blocks = {0};
	int err = source->read(source->context, heap->snapshot, &blocks);

	if (!err) {
		heap_map_deinit(&heap->map);
		err = traced_heap_read(heap, &blocks);
	}
	free(blocks.blocks);
	return err;
}

int heap_read(struct heap *ret, const struct snapshot *snapshot, const struct traced_source *source)
{
	int err;

	*ret = (struct heap){.snapshot = snapshot};
	err = glibc_heap_read(ret);
	if (!err && !ret->allocator && source)
		err = read_traced(ret, source);
	if (!err && ret->nr_own)
		qsort(ret->own, ret->nr_own, sizeof(*ret->own), compare_ranges);
	return err ? err : heap_map_number(&ret->map);
}
