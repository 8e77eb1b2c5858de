/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints a call tree on a terminal; report/formats/tree_format.c has an example. */
#ifndef LEAKTOOLS_REPORT_TREE_PRINTER_H
#define LEAKTOOLS_REPORT_TREE_PRINTER_H

#include "report/trees/call_tree.h"
#include "report/trees/tree_options.h"

#include <stdio.h>

struct tree_look {
	const struct tree_options *options;
	enum call_weight weight; /* CALL_HELD_BYTES, or CALL_HELD_BLOCKS without bytes */
	double whole;		 /* 100 %, in units of the weight */
	bool is_change;		 /* amounts are signed changes */
	bool has_lost;		 /* there is CALL_LOST_BYTES to show */
	const char *lost_words;	 /* their column's title */
	const char *held_words;	 /* of holders: "held" by one, or "pointed to" */
};

/* Prints @tree, which must be sorted by the weight. */
void tree_print(FILE *out, const struct call_tree *tree, const struct tree_look *look);

#endif
