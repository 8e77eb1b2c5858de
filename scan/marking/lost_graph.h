/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that nothing leads to, as a graph. A lost block that no other lost block points to is
 * a root of the loss: freeing it is what was forgotten. So is a cycle of blocks that no other
 * points to. The rest is lost through these. Nearly all of a heap may be lost, so this takes
 * little: 21 bytes for each block, and 32 for each root.
 */
#ifndef LEAKTOOLS_SCAN_LOST_GRAPH_H
#define LEAKTOOLS_SCAN_LOST_GRAPH_H

#include "scan/marking/marking.h"

enum lost_kind {
	LOST_ROOT,
	LOST_CYCLE,   /* a block of a cycle that is a root */
	LOST_THROUGH, /* another lost block leads to it */
};

/* A heap has less than 2^31 blocks, as each has 32 bytes. */
#define LOST_NO_ROOT 0x7fffffffu

struct lost_block {
	uint32_t block;
	/* The lost block that it is lost through; of a cycle, the first; itself. */
	uint32_t root : 31;
	uint32_t is_cycle : 1; /* that root's, and a block of it */
};

static inline enum lost_kind lost_block_kind(const struct lost_block *lost)
{
	return lost->is_cycle ? LOST_CYCLE : lost->root == lost->block ? LOST_ROOT : LOST_THROUGH;
}

/* A root of the loss with all that it leads to; what two roots lead to counts for one of them. */
struct lost_root {
	uint32_t block;
	uint32_t cycle_blocks;	 /* 0: it is no cycle */
	uint32_t through_blocks; /* without the root or the cycle */
	uint64_t through_bytes;
	uint64_t own_bytes; /* of the block, or of all blocks of the cycle */
};

struct lost_graph {
	struct lost_block *blocks; /* by address */
	size_t nr;
	struct lost_root *roots; /* the largest total first */
	size_t nr_roots;
	uint64_t bytes;
};

/* Returns 0 or -ENOMEM. Release with lost_graph_deinit() in either case. */
int lost_graph_init(struct lost_graph *ret, const struct marking *marking);
void lost_graph_deinit(struct lost_graph *graph);

/* Of the root and all that it leads to. */
static inline uint64_t lost_root_total(const struct lost_root *root)
{
	return root->own_bytes + root->through_bytes;
}

/* The entry of a block, or NULL if it is not lost. */
const struct lost_block *lost_graph_find(const struct lost_graph *graph, uint32_t block);

#endif
