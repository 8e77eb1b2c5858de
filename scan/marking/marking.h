/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which blocks the roots lead to. A pointer to a block's start holds it, and so do pointers into it
 * that are typical of C++ and a few libraries (interior_pointers.h). Other pointers into a block
 * hold it possibly: they may be numbers. So do addresses in other forms (hidden_pointers.h), which
 * are looked for if nothing else leads to a block. Several threads mark at the same time.
 */
#ifndef LEAKTOOLS_SCAN_MARKING_H
#define LEAKTOOLS_SCAN_MARKING_H

#include "scan/heaps/heap.h"
#include "scan/marking/hidden_pointers.h"
#include "scan/roots/roots.h"

/* Bits of a block's state. The lowest one that is set counts. */
enum {
	MARK_HELD = 1,	      /* by pointers to starts */
	MARK_POSSIBLE = 2,    /* at least one pointer on the way leads into a block */
	MARK_WEAK = 4,	      /* from a red zone */
	MARK_UNCONFIRMED = 8, /* nothing points to it, but that was not so in the first snapshot */
	MARK_ALL = 15,
	MARK_NR = 4,
	MARK_HIDDEN = 16,	/* times enum hidden_kind: how the address is stored */
	MARK_FOLLOWED = 64,	/* the free list that it is in is marked */
	MARK_SEEN_INSIDE = 128, /* a held block has a pointer into it */
};

/* The holder of a block: another block's number, or a word of a root. */
#define HOLDER_NONE   UINT32_MAX
#define HOLDER_ROOT   0x80000000u
#define HOLDER_UNSEEN (UINT32_MAX - 1) /* a root with a number too large */

/* Blocks that were marked with one mark. */
struct marked_total {
	uint64_t nr, bytes;
};

struct marking {
	const struct heap *heap;
	const struct roots *roots;
	_Atomic uint8_t *states;	     /* by block */
	_Atomic uint32_t *holders;	     /* by block: who led to it first */
	struct marked_total totals[MARK_NR]; /* by the number of the bit in a state */
	unsigned nr_threads;
};

/* Marks everything. Returns 0 or -ENOMEM. Release with marking_deinit() in either case. */
int marking_init(struct marking *ret, const struct heap *heap, const struct roots *roots);
void marking_deinit(struct marking *marking);

/* Marks blocks, and what they lead to, with MARK_UNCONFIRMED unless they are marked already. */
int marking_mark_unconfirmed(struct marking *marking, const uint32_t *blocks, size_t nr);

/* The first block from number @from on that no pointers to starts hold; nr_blocks: there is none.
 */
uint32_t marking_next(const struct marking *marking, uint32_t from);

/* How the address of a possible block is stored. */
static inline enum hidden_kind marking_hidden_kind(const struct marking *marking, uint32_t block)
{
	return (enum hidden_kind)(marking->states[block] / MARK_HIDDEN % 4);
}

static inline bool marking_is_lost(const struct marking *marking, uint32_t block)
{
	return !(marking->states[block] & MARK_ALL);
}

#endif
