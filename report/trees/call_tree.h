/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tree of merged call paths: each node is a function with the weights of all paths through it.
 * leakparse --format tree prints it.
 *
 * The tree is built from weighted stacks, in either direction: from the allocator outwards to its
 * callers, or from main inwards. Frames with the same function and module merge into one node,
 * which keeps the range of their lines.
 *
 * Stacks are hostile: they may be deep and all different. Nothing here recurses, and the number of
 * nodes is limited. A path beyond the limit ends at the deepest existing node and is counted as
 * cut.
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
	CALL_LOST_BYTES, /* of the held ones, by a scan; trees are not sorted by them */
	CALL_NR_WEIGHTS,
};

/* Signed, because a difference of two moments may be negative. Sums saturate. */
struct call_weights {
	int64_t of[CALL_NR_WEIGHTS];
};

/* Which frames are merged into one node. */
enum call_merge {
	CALL_BY_FUNCTION, /* and module; without a symbol, the address */
	CALL_BY_FILE,	  /* the source file, or the module if it is unknown */
	CALL_BY_MODULE,	  /* for this and CALL_BY_FILE, equal neighbours become one frame */
};

struct call_node {
	const char *name; /* a function, source file or module, by options.merge; "" for the root */
	const char *module, *file;	/* NULL: unknown, or different among the merged frames */
	int first_line, last_line;	/* in @file; 0: unknown */
	struct call_weights total;	/* including all nodes below */
	struct call_weights self;	/* of paths that end here */
	struct call_node *parent;	/* NULL: the root */
	struct call_node *first, *next; /* first child, next sibling; see call_tree_sort() */
	uint32_t nr_children;
	uint32_t depth; /* 0 for the root */
	/* What leads to the bytes of all paths through it; NULL or "": not known, or several. */
	const char *holder;
	bool has_other_holders; /* they lead to more than a tenth */
};

struct call_tree_options {
	bool main_first; /* from main inwards; else from the allocator outwards */
	enum call_merge merge;
	size_t max_depth; /* innermost frames of each stack to keep; 0: all */
	size_t max_nodes; /* 0: CALL_TREE_MAX_NODES */
};

#define CALL_TREE_MAX_NODES 4000000 /* about 250 bytes each */

struct call_tree;

/* Returns 0 or -ENOMEM. @options is copied. */
int call_tree_create(const struct call_tree_options *options, struct call_tree **ret);
void call_tree_destroy(struct call_tree *tree);

/*
 * Adds a path of the stack's frames. @group, if not NULL, is a node above them in either direction,
 * such as a thread or a size. Returns 0 or -ENOMEM.
 */
int call_tree_add(struct call_tree *tree, const char *group, struct stack_store *store,
		  uint32_t stack_id, const struct call_weights *weights);
/* The same for named frames, innermost first. Their strings are copied. */
int call_tree_add_frames(struct call_tree *tree, const char *group,
			 const struct named_frame *frames, size_t nr,
			 const struct call_weights *weights);

/* Adds the listed blocks of @report, which must outlive the tree. Returns 0 or -ENOMEM. */
int call_tree_add_report(struct call_tree *tree, const struct leak_report *report);

/* Sorts all children by descending @weight, then by name. */
void call_tree_sort(struct call_tree *tree, enum call_weight weight);

/* The root, valid as long as the tree. */
const struct call_node *call_tree_root(const struct call_tree *tree);
/* The next node in preorder, starting at the root; NULL after the last one. */
const struct call_node *call_tree_next(const struct call_node *node);
/* The same, skipping all nodes below @node. */
const struct call_node *call_tree_skip(const struct call_node *node);

/* The number of paths that the node limit has cut short. */
uint64_t call_tree_nr_cut(const struct call_tree *tree);

/* a + b, saturating at INT64_MIN and INT64_MAX. */
int64_t call_weight_sum(int64_t a, int64_t b);

#endif
