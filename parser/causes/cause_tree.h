/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds causes in the tree of calls: functions with many callees that are alike. */
#ifndef LEAKTOOLS_PARSER_CAUSE_TREE_H
#define LEAKTOOLS_PARSER_CAUSE_TREE_H

#include "parser/causes/cause_bags.h"

/*
 * Makes each member that holds something part of a cause. The members are sorted by path, and
 * finder->weight_before is set. Errors go to finder->err.
 */
void cause_tree_explore(struct cause_finder *finder);

#endif
