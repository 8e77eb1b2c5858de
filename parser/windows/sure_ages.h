/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long held blocks are known to have lived, in a recording in windows. A look cannot tell a
 * block from a later one at its address, unless its content changes. So a block has surely lived
 * until its window closed. It has lived until its last look if the last SURE_LOOKS looks found it
 * untouched: of ten blocks that one look finds untouched, one may be another block, so of a
 * thousand blocks about ten (docs/reachability.md).
 */
#ifndef LEAKTOOLS_PARSER_SURE_AGES_H
#define LEAKTOOLS_PARSER_SURE_AGES_H

#include "parser/heap/heap_block.h"

#define SURE_LOOKS 2

struct followed_block;

/* What is known of a held block after its window; NULL: its window has not closed. */
typedef const struct followed_block *followed_fn(const void *context,
						 const struct heap_block *block);

/* Zero it before use. */
struct sure_ages {
	struct sure_age {
		uint64_t until_ns;  /* the block has surely lived so long; UINT64_MAX: to the end */
		uint64_t closed_ns; /* its window closed then; UINT64_MAX: it has not */
		uint64_t window_ns; /* and was open for so long */
		bool is_followed;   /* in the sample */
		bool may_stay;	    /* its looks show neither that it has lived on nor otherwise */
	} * of;
	/*
	 * Blocks that are younger have not had enough looks to show that they stay. If a window has
	 * been open for most of that time, its blocks need none: then this is more than what is
	 * known of the blocks that have not.
	 */
	double youngest_ns;
};

/* @end_ns: of the recording. Returns 0 or -ENOMEM. */
int sure_ages_find(const struct heap_block *held, size_t nr, uint64_t end_ns, followed_fn *followed,
		   const void *context, struct sure_ages *ret);
void sure_ages_deinit(struct sure_ages *ages);

#endif
