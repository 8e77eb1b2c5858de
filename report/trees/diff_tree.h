/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --diff --format tree: what was added in each interval, less what was freed of it,
 * merged by call paths. What grew comes first; percentages are of what all stacks that grew added.
 */
#ifndef LEAKTOOLS_REPORT_DIFF_TREE_H
#define LEAKTOOLS_REPORT_DIFF_TREE_H

#include "report/text/diff_report.h"

/* A diff_report's writer, with the tree_options as its context. */
int diff_tree_write(const void *options, FILE *out, const struct diff_interval *diff);

#endif
