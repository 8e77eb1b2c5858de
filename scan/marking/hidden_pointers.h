/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A second look for the blocks that nothing leads to. Programs also store addresses
 *  - one past the end of a block, or up to 8 bytes before its start (arrays from 1 on),
 *  - with a tag in the high bits that addresses have not: 17 on x86-64 (lock-free lists, NaN
 *    boxing),
 *  - at places that are not multiples of 8 (packed structures).
 * Such words are rare and may be numbers, so they count only for a block without a better one.
 */
#ifndef LEAKTOOLS_SCAN_HIDDEN_POINTERS_H
#define LEAKTOOLS_SCAN_HIDDEN_POINTERS_H

#include "scan/heaps/heap.h"

enum hidden_kind {
	HIDDEN_NOT, /* an ordinary pointer */
	HIDDEN_OUTSIDE,
	HIDDEN_TAGGED,
	HIDDEN_UNALIGNED,
};

/* What to look for. */
struct hidden_pointers {
	const struct heap *heap;
	uint64_t *filter; /* a bit for each hash of an address */
	unsigned shift;
	uint64_t mask;		  /* the bits that may be set in an address */
	uint64_t lowest, highest; /* of the addresses */
	uint64_t tops[256];	  /* their bits 40 to 47, in each byte of a word */
	size_t nr_tops;
};

/* Prepares for @nr blocks. Returns 0 or -ENOMEM. Release with hidden_pointers_deinit(). */
int hidden_pointers_init(struct hidden_pointers *ret, const struct heap *heap, size_t nr);
void hidden_pointers_deinit(struct hidden_pointers *hidden);

void hidden_pointers_add(struct hidden_pointers *hidden, uint32_t block);

/* Bytes to look through, whose address in the process is a multiple of 8. */
struct hidden_place {
	const uint8_t *bytes;
	uint64_t size_bytes;
	uint64_t start, end; /* where words are to begin; what is around them tells more of them */
};

/*
 * Looks for words that begin in @place. Calls @on_found for what may lead to a block: one that was
 * added, or another one. @at is where the word begins, from @place->bytes on. Stops and returns
 * what @on_found returns, unless that is 0.
 */
int hidden_pointers_find(const struct hidden_pointers *hidden, const struct hidden_place *place,
			 int (*on_found)(void *context, uint64_t at, uint32_t block,
					 enum hidden_kind kind),
			 void *context);

#endif
