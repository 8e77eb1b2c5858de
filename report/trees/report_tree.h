/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the call tree of the blocks that a report lists. */
#ifndef LEAKTOOLS_REPORT_REPORT_TREE_H
#define LEAKTOOLS_REPORT_REPORT_TREE_H

#include "report/trees/call_tree.h"
#include "report/trees/tree_options.h"

/* Creates a tree, sorted by report_tree_weight(). Returns 0 or -ENOMEM. */
int report_tree_create(const struct leak_report *report, const struct tree_options *options,
		       struct call_tree **ret);

/* Held bytes, or held blocks if no size is known. */
enum call_weight report_tree_weight(const struct call_tree *tree);

#endif
