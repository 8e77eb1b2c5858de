/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks through glibc's chunks, from one to the next. */
#ifndef LEAKTOOLS_SCAN_GLIBC_WALK_H
#define LEAKTOOLS_SCAN_GLIBC_WALK_H

#include "scan/heaps/glibc.h"

/* How a walk ends. */
enum glibc_end {
	GLIBC_END_TOP,	     /* at the chunk where it was to end */
	GLIBC_END_FENCEPOST, /* at chunks that glibc puts where an arena's part ends */
	GLIBC_END_BROKEN,
};

/* A chunk on the way: [address, address + size_bytes). */
struct glibc_chunk {
	uint64_t address, size_bytes;
	bool is_used, is_fencepost;
};

typedef void glibc_visit(void *context, const struct glibc_chunk *chunk);

/*
 * Walks from the chunk at @from to @top, below @end. @visit may be NULL; then each chunk is a step
 * of glibc_take_steps(). *@ret_end is behind the last chunk: @top, or the end of the fenceposts.
 */
enum glibc_end glibc_walk(struct glibc *glibc, uint64_t from, uint64_t top, uint64_t end,
			  glibc_visit *visit, void *context, uint64_t *ret_end);

#endif
