/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/tree_options.h"

struct call_tree_options tree_options_for_call_tree(const struct tree_options *options)
{
	return (struct call_tree_options){
		.main_first = options->main_first,
		.max_depth = options->depth,
		.merge = options->by == TREE_BY_FILE	 ? CALL_BY_FILE
			 : options->by == TREE_BY_MODULE ? CALL_BY_MODULE
							 : CALL_BY_FUNCTION,
	};
}
