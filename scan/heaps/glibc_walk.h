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

/*
 * Walks from the chunk at @from to @top, below @end. Each chunk is a step of glibc_take_steps().
 * *@ret_end is behind the last chunk: @top, or the end of the fenceposts; not set if it is broken.
 */
enum glibc_end glibc_walk(struct glibc *glibc, uint64_t from, uint64_t top, uint64_t end,
			  uint64_t *ret_end);

/*
 * The same for @part, whose end is what is behind its top, and takes down in it what was walked
 * over. Returns 0, and *@ret is how the walk ended; or -ENOMEM. The caller frees @part->used.
 */
int glibc_walk_part(struct glibc *glibc, struct glibc_part *part, enum glibc_end *ret,
		    uint64_t *ret_end);

#endif
