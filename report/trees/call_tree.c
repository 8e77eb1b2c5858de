/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/call_tree.h"

#include "report/names/word_table.h"
#include "report/text/cause_holder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Hashed, so it has no padding. Names are from the pool, so equal names are equal pointers. */
struct node_key {
	const struct node *parent;
	const char *name, *module;
};

struct node {
	struct call_node shown; /* the first member: a pointer to it is one to the node */
	struct node_key key;
	bool mixed_files; /* shown.file is NULL because the frames have several */
	UT_hash_handle hh;
};

struct call_tree {
	struct call_tree_options options;
	struct name_pool *names;
	struct named_stack stack; /* being added */
	struct named_frame *path; /* its merged frames, innermost first */
	size_t max_path;
	struct node root;
	struct node *nodes; /* all but the root */
	struct node *last;  /* where the path ends that was added last */
	uint64_t nr_cut;
};

int64_t call_weight_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

int call_tree_create(const struct call_tree_options *options, struct call_tree **ret)
{
	struct call_tree *tree = calloc(1, sizeof(*tree));

	*ret = NULL;
	if (!tree)
		return -ENOMEM;
	tree->options = *options;
	if (!tree->options.max_nodes)
		tree->options.max_nodes = CALL_TREE_MAX_NODES;
	tree->names = name_pool_create();
	if (!tree->names) {
		call_tree_destroy(tree);
		return -ENOMEM;
	}
	tree->stack.names = tree->names;
	tree->root.shown.name = "";
	*ret = tree;
	return 0;
}

void call_tree_destroy(struct call_tree *tree)
{
	struct node *node, *next;

	if (!tree)
		return;
	HASH_ITER (hh, tree->nodes, node, next) {
		HASH_DEL(tree->nodes, node);
		free(node);
	}
	named_stack_deinit(&tree->stack);
	free(tree->path);
	name_pool_destroy(tree->names);
	free(tree);
}

/* The frame that @frame counts as. */
static struct named_frame merged_frame(enum call_merge merge, const struct named_frame *frame)
{
	struct named_frame merged = *frame;

	if (merge == CALL_BY_FUNCTION || frame->is_mark)
		return merged;
	if (merge == CALL_BY_FILE && frame->file) {
		merged.name = frame->file;
		merged.module = NULL;
	} else {
		merged.name = frame->module ? frame->module : "(unknown)";
		merged.module = NULL;
	}
	merged.file = NULL;
	merged.line = 0;
	return merged;
}

static int reserve_path(struct call_tree *tree, size_t nr)
{
	struct named_frame *path;

	if (nr <= tree->max_path)
		return 0;
	path = realloc(tree->path, 2 * nr * sizeof(*path));
	if (!path)
		return -ENOMEM;
	tree->path = path;
	tree->max_path = 2 * nr;
	return 0;
}

/* Replaces the strings of @frame by the tree's copies. */
static int own_names(struct call_tree *tree, struct named_frame *frame)
{
	int err = name_pool_add(tree->names, frame->name, &frame->name);

	if (!err)
		err = name_pool_add(tree->names, frame->module, &frame->module);
	if (!err)
		err = name_pool_add(tree->names, frame->file, &frame->file);
	return err;
}

/* Fills tree->path. */
static int make_path(struct call_tree *tree, const struct named_frame *frames, size_t nr,
		     size_t *ret_nr)
{
	enum call_merge merge = tree->options.merge;
	size_t nr_path = 0;
	int err = reserve_path(tree, nr);

	for (size_t i = 0; i < nr && !err; i++) {
		struct named_frame frame = merged_frame(merge, &frames[i]);

		err = own_names(tree, &frame);
		if (merge != CALL_BY_FUNCTION && nr_path &&
		    tree->path[nr_path - 1].name == frame.name)
			continue;
		if (tree->options.max_depth && nr_path == tree->options.max_depth)
			break;
		tree->path[nr_path++] = frame;
	}
	*ret_nr = nr_path;
	return err;
}

static void add_lines(struct node *node, const struct named_frame *frame)
{
	struct call_node *shown = &node->shown;

	if (!frame->file || node->mixed_files)
		return;
	if (shown->file && shown->file != frame->file) {
		node->mixed_files = true;
		shown->file = NULL;
		shown->first_line = shown->last_line = 0;
		return;
	}
	shown->file = frame->file;
	if (frame->line <= 0)
		return;
	if (!shown->first_line || frame->line < shown->first_line)
		shown->first_line = frame->line;
	if (frame->line > shown->last_line)
		shown->last_line = frame->line;
}

/* Finds or creates the child of @parent for @frame. *@ret is NULL beyond the node limit. */
static int get_child(struct call_tree *tree, struct node *parent, const struct named_frame *frame,
		     struct node **ret)
{
	const struct node_key key = {parent, frame->name, frame->module};
	struct node *node;

	WORD_TABLE_FIND(tree->nodes, &key, node);
	if (!node && HASH_COUNT(tree->nodes) < tree->options.max_nodes) {
		node = calloc(1, sizeof(*node));
		if (!node)
			return -ENOMEM;
		node->key = key;
		WORD_TABLE_ADD(tree->nodes, key, node);
		if (!hash_added(node)) {
			free(node);
			return -ENOMEM;
		}
		node->shown = (struct call_node){
			.name = frame->name,
			.module = frame->module,
			.parent = &parent->shown,
			.next = parent->shown.first,
			.depth = parent->shown.depth + 1,
		};
		parent->shown.first = &node->shown;
		parent->shown.nr_children++;
	}
	if (node)
		add_lines(node, frame);
	*ret = node;
	return 0;
}

static void add_weights(struct call_weights *sum, const struct call_weights *weights)
{
	for (size_t i = 0; i < CALL_NR_WEIGHTS; i++)
		sum->of[i] = call_weight_sum(sum->of[i], weights->of[i]);
}

/* Moves *@node to its child for @frame, which gains @weights, or sets *@ret_cut. */
static int descend(struct call_tree *tree, struct node **node, const struct named_frame *frame,
		   const struct call_weights *weights, bool *ret_cut)
{
	struct node *child;
	int err = get_child(tree, *node, frame, &child);

	*ret_cut = !err && !child;
	if (err || !child)
		return err;
	add_weights(&child->shown.total, weights);
	*node = child;
	return 0;
}

int call_tree_add_frames(struct call_tree *tree, const char *group,
			 const struct named_frame *frames, size_t nr,
			 const struct call_weights *weights)
{
	struct node *node = &tree->root;
	bool cut = false;
	size_t nr_path;
	int err = make_path(tree, frames, nr, &nr_path);

	if (err)
		return err;
	add_weights(&node->shown.total, weights);
	if (group) {
		struct named_frame first = {.name = group};

		err = own_names(tree, &first);
		if (!err)
			err = descend(tree, &node, &first, weights, &cut);
	}
	for (size_t i = 0; i < nr_path && !err && !cut; i++)
		err = descend(tree, &node,
			      &tree->path[tree->options.main_first ? nr_path - 1 - i : i], weights,
			      &cut);
	if (err)
		return err;
	add_weights(&node->shown.self, weights);
	tree->last = node;
	tree->nr_cut += cut;
	return 0;
}

int call_tree_add(struct call_tree *tree, const char *group, struct stack_store *store,
		  uint32_t stack_id, const struct call_weights *weights)
{
	int err = named_stack_load_frames(&tree->stack, store, stack_id);

	return err ? err
		   : call_tree_add_frames(tree, group, tree->stack.frames, tree->stack.nr, weights);
}

static int64_t clamp(uint64_t amount)
{
	return amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
}

/* Of the path that ends at @end. */
static void note_holder(struct node *end, const struct cause_holder *holder)
{
	static const char none[] = "";
	const char *name = holder->name ? holder->name : none;

	for (struct call_node *node = &end->shown; node; node = node->parent) {
		if (node->holder && node->holder != name)
			node->holder = none;
		else
			node->holder = name;
		node->has_other_holders |= holder->has_others;
	}
}

int call_tree_add_report(struct call_tree *tree, const struct leak_report *report)
{
	int err = 0;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		const struct leak_site *listed = &report->sites[i];
		const struct site *site = report->verdicts.sites[listed->site].site;
		const struct call_weights weights = {
			.of = {[CALL_HELD_BYTES] = clamp(listed->bytes),
			       [CALL_HELD_BLOCKS] = clamp(listed->blocks),
			       [CALL_ALLOCATED_BYTES] = clamp(site->allocated_bytes),
			       [CALL_ALLOCATIONS] = clamp(site->allocations),
			       [CALL_LOST_BYTES] = clamp(listed->reach.bytes[report->worst])},
		};

		err = call_tree_add(tree, NULL, report->analysis->stacks, site->stack_id, &weights);
		if (!err && report->holders) {
			struct cause_holder holder = cause_holder_of_most(report, listed, 1);

			note_holder(tree->last, &holder);
		}
	}
	return err;
}

/* utlist's comparison functions take no context, so each weight needs its own. */
static int compare(const struct call_node *a, const struct call_node *b, enum call_weight weight)
{
	if (a->total.of[weight] != b->total.of[weight])
		return a->total.of[weight] > b->total.of[weight] ? -1 : 1;
	if (a->name != b->name)
		return strcmp(a->name, b->name);
	return strcmp(a->module ? a->module : "", b->module ? b->module : "");
}

#define COMPARISON(suffix, weight)                                                                 \
	static int compare_##suffix(const struct call_node *a, const struct call_node *b)          \
	{                                                                                          \
		return compare(a, b, weight);                                                      \
	}
COMPARISON(held_bytes, CALL_HELD_BYTES)
COMPARISON(held_blocks, CALL_HELD_BLOCKS)
COMPARISON(allocated_bytes, CALL_ALLOCATED_BYTES)
COMPARISON(allocations, CALL_ALLOCATIONS)

void call_tree_sort(struct call_tree *tree, enum call_weight weight)
{
	static int (*const comparisons[CALL_NR_WEIGHTS])(const struct call_node *a,
							 const struct call_node *b) = {
		[CALL_HELD_BYTES] = compare_held_bytes,
		[CALL_HELD_BLOCKS] = compare_held_blocks,
		[CALL_ALLOCATED_BYTES] = compare_allocated_bytes,
		[CALL_ALLOCATIONS] = compare_allocations,
	};
	struct node *node = &tree->root;

	LL_SORT(node->shown.first, comparisons[weight]);
	for (node = tree->nodes; node; node = node->hh.next)
		LL_SORT(node->shown.first, comparisons[weight]);
}

const struct call_node *call_tree_root(const struct call_tree *tree)
{
	return &tree->root.shown;
}

const struct call_node *call_tree_skip(const struct call_node *node)
{
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

const struct call_node *call_tree_next(const struct call_node *node)
{
	return node->first ? node->first : call_tree_skip(node);
}

uint64_t call_tree_nr_cut(const struct call_tree *tree)
{
	return tree->nr_cut;
}
