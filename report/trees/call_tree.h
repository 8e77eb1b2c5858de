/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call paths, merged: each node is a function, with the sum of what all paths through it carry.
 * What leakparse --format tree prints, and what a flame graph draws.
 *
 * Built from stacks with weights, in either direction: from the allocator outwards (who called
 * it?) or from main inwards (where does it go?). Frames merge that have the same function and
 * module; lines are kept as a range.
 *
 * Stacks are hostile: they may be deep and all different. Nothing here recurses, and the number of
 * nodes has a limit; what goes deeper then ends at the last node that it shares with others, and is
 * counted.
 */
#ifndef LEAKTOOLS_REPORT_CALL_TREE_H
#define LEAKTOOLS_REPORT_CALL_TREE_H

#include "parser/verdicts/leak_report.h"
#include "report/names/named_stack.h"

enum call_weight {
	CALL_HELD_BYTES,
	CALL_HELD_BLOCKS,
	CALL_ALLOCATED_BYTES, /* by all allocations, freed or not */
	CALL_ALLOCATIONS,
	CALL_NR_WEIGHTS,
};

/* Signed: what a difference of two moments carries may be negative. Sums stop at the limits. */
struct call_weights {
	int64_t of[CALL_NR_WEIGHTS];
};

/* What makes two frames the same. */
enum call_merge {
	CALL_BY_FUNCTION, /* and module; without a symbol, the address */
	CALL_BY_FILE,	  /* source file, or module where it is not known; */
	CALL_BY_MODULE,	  /* of neighbours that are the same one remains */
};

struct call_node {
	const char *name; /* a function, source file or module, by options.merge; "" of the root */
	const char *module, *file;	/* NULL: not known, or not the same for all */
	int first_line, last_line;	/* in @file; 0: not known */
	struct call_weights total;	/* with all that is below it */
	struct call_weights self;	/* of the paths that end here */
	struct call_node *parent;	/* NULL: the root */
	struct call_node *first, *next; /* child, sibling; in order after call_tree_sort() */
	uint32_t nr_children;
	uint32_t depth; /* the root's: 0 */
};

struct call_tree_options {
	bool main_first; /* else the allocator is */
	enum call_merge merge;
	size_t max_depth; /* only so many innermost frames of each stack; 0: all */
	size_t max_nodes; /* 0: CALL_TREE_MAX_NODES */
};

#define CALL_TREE_MAX_NODES 4000000 /* some 250 bytes each */

struct call_tree;

/* Returns 0 or -ENOMEM. @options is copied. */
int call_tree_create(const struct call_tree_options *options, struct call_tree **ret);
void call_tree_destroy(struct call_tree *tree);

/*
 * Adds a path: @group, if not NULL, comes first in either direction (a thread, a size), then the
 * stack's frames. Return 0 or -ENOMEM.
 */
int call_tree_add(struct call_tree *tree, const char *group, struct stack_store *store,
		  uint32_t stack_id, const struct call_weights *weights);
/* The same with frames by names, innermost first; their strings need not be of any pool. */
int call_tree_add_frames(struct call_tree *tree, const char *group,
			 const struct named_frame *frames, size_t nr,
			 const struct call_weights *weights);

/* Adds the stacks that @report lists, each with the listed blocks. */
int call_tree_add_report(struct call_tree *tree, const struct leak_report *report);

/* Orders all children: the greatest amount of @weight first, then by name. */
void call_tree_sort(struct call_tree *tree, enum call_weight weight);

/* Valid as long as the tree. */
const struct call_node *call_tree_root(const struct call_tree *tree);
/* Each parent before its children; begin with the root. NULL: that was all. */
const struct call_node *call_tree_next(const struct call_node *node);
/* The same, but without what is below @node. */
const struct call_node *call_tree_skip(const struct call_node *node);

/* Paths that the limit of nodes has cut short. */
uint64_t call_tree_nr_cut(const struct call_tree *tree);

/* a + b, at most INT64_MAX, at least INT64_MIN. */
int64_t call_weight_sum(int64_t a, int64_t b);

#endif
