/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that nothing leads to, as a graph. A lost block that no other lost block points to is
 * a root of the loss: freeing it is what was forgotten. So is a cycle of blocks that no other
 * points to. The rest is lost through these.
 */
#ifndef LEAKTOOLS_SCAN_LOST_GRAPH_H
#define LEAKTOOLS_SCAN_LOST_GRAPH_H

#include "scan/marking/marking.h"

enum lost_kind {
	LOST_ROOT,
	LOST_CYCLE,   /* a block of a cycle that is a root */
	LOST_THROUGH, /* another lost block leads to it */
};

struct lost_block {
	uint32_t block;
	uint32_t root; /* the lost block that it is lost through; of a cycle, the first; itself */
	enum lost_kind kind;
};

/* A root of the loss with all that it leads to; what two roots lead to counts for one of them. */
struct lost_root {
	uint32_t block;
	bool is_cycle;
	uint64_t size_bytes;
	uint64_t cycle_blocks;
	uint64_t through_blocks, through_bytes; /* without the root or the cycle */
	uint64_t cycle_bytes;			/* all blocks of the cycle; 0: no cycle */
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
	return (root->is_cycle ? root->cycle_bytes : root->size_bytes) + root->through_bytes;
}

/* The entry of a block, or NULL if it is not lost. */
const struct lost_block *lost_graph_find(const struct lost_graph *graph, uint32_t block);

#endif
