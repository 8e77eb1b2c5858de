/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's choices for call trees: leakparse --inverted, --depth, --by, --threshold. */
#ifndef LEAKTOOLS_REPORT_TREE_OPTIONS_H
#define LEAKTOOLS_REPORT_TREE_OPTIONS_H

#include "report/trees/call_tree.h"

enum tree_grouping {
	TREE_BY_FUNCTION,
	TREE_BY_FILE,
	TREE_BY_MODULE,
	TREE_BY_THREAD, /* functions, below the allocating thread */
	TREE_BY_SIZE,	/* functions, below the block size */
};

struct tree_options {
	bool main_first; /* --inverted */
	size_t depth;	 /* innermost frames to keep; 0: all */
	enum tree_grouping by;
	double threshold_percent; /* smaller branches are summed up */
	bool utf8;		  /* the terminal shows UTF-8 */
	bool colour;		  /* the terminal shows colours */
	size_t columns;		  /* the terminal has so many; 0: lines may be of any length */
};

#define TREE_DEFAULT_THRESHOLD 1.0

/* The options for call_tree_create(). */
struct call_tree_options tree_options_for_call_tree(const struct tree_options *options);

#endif
