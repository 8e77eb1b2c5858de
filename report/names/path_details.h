/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds what tells stacks apart that would look the same in a list: the functions that only some of
 * them have; if there are none, source lines; if these are equal, addresses.
 */
#ifndef LEAKTOOLS_REPORT_PATH_DETAILS_H
#define LEAKTOOLS_REPORT_PATH_DETAILS_H

#include "report/names/named_stack.h"

#define PATH_MAX_DETAILS 3

/* A stack in a list. All names are of one pool. */
struct stack_path {
	const struct named_stack *stack;
	size_t first; /* the frame that it is named after */
};

enum path_detail {
	PATH_DETAIL_NONE,
	PATH_DETAIL_NAME,
	PATH_DETAIL_LINE,
	PATH_DETAIL_ADDRESS,
};

/* Which frames of a stack to show, and in what detail. */
struct path_details {
	size_t frames[PATH_MAX_DETAILS];
	enum path_detail details[PATH_MAX_DETAILS];
	size_t nr;
};

/*
 * Finds the details of the @nr paths whose indices are in @group, which is reordered. Adds them to
 * @ret, at the same indices.
 */
void path_details_find(const struct stack_path *paths, size_t *group, size_t nr,
		       struct path_details *ret);

/* What @details say of frame @i. */
enum path_detail path_details_of(const struct path_details *details, size_t i);

#endif
