/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/report_tree.h"
#include "common/quantity.h"
#include "report/names/word_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The blocks of one stack that share a thread or a size. */
struct group {
	uint64_t key; /* the thread or the size; UINT64_MAX: unknown size */
	struct call_weights weights;
	UT_hash_handle hh;
};

static uint64_t key_of(enum tree_grouping by, const struct heap_block *block)
{
	if (by == TREE_BY_THREAD)
		return (uint32_t)block->allocated.tid;
	return block->size_known ? block->size_bytes : UINT64_MAX;
}

static void name_group(const struct leak_report *report, enum tree_grouping by, uint64_t key,
		       char *name, size_t size)
{
	if (by == TREE_BY_THREAD) {
		const char *comm = heap_tracker_comm_of(report->analysis->heaps, (pid_t)key);

		snprintf(name, size, "thread %d (%.64s)", (pid_t)key, *comm ? comm : "?");
	} else if (key == UINT64_MAX) {
		snprintf(name, size, "blocks of unknown size");
	} else {
		snprintf(name, size, "blocks of %" PRIu64 " byte%s", key, quantity_plural(key));
	}
}

static void add_bytes(int64_t *sum, const struct heap_block *block)
{
	if (block->size_known)
		*sum = call_weight_sum(*sum, block->size_bytes > INT64_MAX
						     ? INT64_MAX
						     : (int64_t)block->size_bytes);
}

/* Adds a listed block to its group. */
static int count_block(struct group **groups, enum tree_grouping by, const struct heap_block *block,
		       bool is_lost)
{
	uint64_t key = key_of(by, block);
	struct group *group;

	WORD_TABLE_FIND(*groups, &key, group);
	if (!group) {
		group = calloc(1, sizeof(*group));
		if (!group)
			return -ENOMEM;
		group->key = key;
		WORD_TABLE_ADD(*groups, key, group);
		if (!hash_added(group)) {
			free(group);
			return -ENOMEM;
		}
	}
	add_bytes(&group->weights.of[CALL_HELD_BYTES], block);
	if (is_lost)
		add_bytes(&group->weights.of[CALL_LOST_BYTES], block);
	group->weights.of[CALL_HELD_BLOCKS]++;
	return 0;
}

static int add_site_by_group(const struct leak_report *report, enum tree_grouping by,
			     struct call_tree *tree, const struct site_verdict *site)
{
	struct group *groups = NULL, *group, *next;
	int err = 0;

	for (size_t i = 0; i < site->held_blocks && !err; i++) {
		uint32_t index = report->verdicts.order[site->first + i];

		if (report->choices[index] == LEAK_LISTED)
			err = count_block(&groups, by, &report->held[index],
					  leak_report_group_of(report, index) == report->worst);
	}
	HASH_ITER (hh, groups, group, next) {
		char name[128];

		name_group(report, by, group->key, name, sizeof(name));
		if (!err)
			err = call_tree_add(tree, name, report->analysis->stacks,
					    site->site->stack_id, &group->weights);
		HASH_DEL(groups, group);
		free(group);
	}
	return err;
}

static int add_by_group(const struct leak_report *report, enum tree_grouping by,
			struct call_tree *tree)
{
	int err = 0;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++)
		err = add_site_by_group(report, by, tree,
					&report->verdicts.sites[report->sites[i].site]);
	return err;
}

enum call_weight report_tree_weight(const struct call_tree *tree)
{
	return call_tree_root(tree)->total.of[CALL_HELD_BYTES] ? CALL_HELD_BYTES : CALL_HELD_BLOCKS;
}

int report_tree_create(const struct leak_report *report, const struct tree_options *options,
		       struct call_tree **ret)
{
	const struct call_tree_options call_options = tree_options_for_call_tree(options);
	struct call_tree *tree;
	int err = call_tree_create(&call_options, &tree);

	*ret = NULL;
	if (err)
		return err;
	err = options->by == TREE_BY_THREAD || options->by == TREE_BY_SIZE
		      ? add_by_group(report, options->by, tree)
		      : call_tree_add_report(tree, report);
	if (err) {
		call_tree_destroy(tree);
		return err;
	}
	call_tree_sort(tree, report_tree_weight(tree));
	*ret = tree;
	return 0;
}
