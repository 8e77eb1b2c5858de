/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --diff --format tree: the net change of each interval as a call tree, growth first.
 * Percentages are of the sum of all stacks that grew.
 */
#ifndef LEAKTOOLS_REPORT_DIFF_TREE_H
#define LEAKTOOLS_REPORT_DIFF_TREE_H

#include "report/text/diff_report.h"

/* A diff_writer.write() with the tree_options as its context. */
int diff_tree_write(const void *options, FILE *out, const struct diff_interval *diff);

#endif
