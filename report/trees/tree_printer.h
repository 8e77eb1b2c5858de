/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call tree as text for a terminal; report/formats/tree_format.c shows how it looks. */
#ifndef LEAKTOOLS_REPORT_TREE_PRINTER_H
#define LEAKTOOLS_REPORT_TREE_PRINTER_H

#include "report/trees/call_tree.h"
#include "report/trees/tree_options.h"

#include <stdio.h>

struct tree_look {
	const struct tree_options *options;
	enum call_weight weight; /* CALL_HELD_BYTES, or CALL_HELD_BLOCKS where there are no bytes */
	double whole;		 /* of that weight: what is 100 % */
	bool is_change;		 /* what was added less what was freed, with signs */
};

/* @tree is sorted by the weight. */
void tree_print(FILE *out, const struct call_tree *tree, const struct tree_look *look);

#endif
