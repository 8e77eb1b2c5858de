/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds stacks that are versions of one stack. A runtime such as V8 compiles a function again and
 * again, elsewhere each time, and may compile its callees into it. So one leak has one stack after
 * the other, and each looks like a leak that has stopped. docs/verdicts.md, "Causes".
 */
#ifndef LEAKTOOLS_PARSER_CAUSE_VERSIONS_H
#define LEAKTOOLS_PARSER_CAUSE_VERSIONS_H

#include "parser/causes/cause_bags.h"

struct compiled_stack;

/* The members with generated functions. Zero it before use. */
struct cause_versions {
	struct compiled_stack *list;
	size_t nr, capacity;
};

/*
 * Adds the next member of the finder. @functions and @places describe its @nr frames, the outermost
 * first (verdict_input). Returns 0 or -ENOMEM.
 */
int cause_versions_add(struct cause_versions *versions, const struct cause_finder *finder,
		       const uint64_t *functions, const uint64_t *places, size_t nr);

/*
 * Gives members that are versions of one stack the same member.version, and paths of only the
 * functions that all of them share. Returns 0 or -ENOMEM.
 */
int cause_versions_join(struct cause_versions *versions, struct cause_finder *finder);

void cause_versions_deinit(struct cause_versions *versions);

#endif
