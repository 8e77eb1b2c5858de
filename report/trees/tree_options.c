/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/tree_options.h"

#include "common/scope.h"

#include <errno.h>
#include <string.h>

int tree_grouping_parse(const char *name, enum tree_grouping *ret)
{
	static const char *const names[] = {
		[TREE_BY_FUNCTION] = "function", [TREE_BY_FILE] = "file",
		[TREE_BY_MODULE] = "module",	 [TREE_BY_THREAD] = "thread",
		[TREE_BY_SIZE] = "size",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum tree_grouping)i;
			return 0;
		}
	}
	return -EINVAL;
}

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
