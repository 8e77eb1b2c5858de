/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call tree (call_tree.h) of what a report lists, as its options want it. */
#ifndef LEAKTOOLS_REPORT_REPORT_TREE_H
#define LEAKTOOLS_REPORT_REPORT_TREE_H

#include "report/trees/call_tree.h"
#include "report/trees/tree_options.h"

/* Sorted by held bytes, or by blocks where no size is known. Returns 0 or -ENOMEM. */
int report_tree_create(const struct leak_report *report, const struct tree_options *options,
		       struct call_tree **ret);

/* What the tree is sorted by. */
enum call_weight report_tree_weight(const struct call_tree *tree);

#endif
