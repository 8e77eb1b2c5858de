/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds a program's own wrappers of the allocator by what they do, where no name gives them away
 * (common/schema/wrapper_names.h). docs/verdicts.md, "Own wrappers", has the rule and its reasons.
 */
#ifndef LEAKTOOLS_PARSER_OWN_WRAPPERS_H
#define LEAKTOOLS_PARSER_OWN_WRAPPERS_H

#include "parser/statistics/site_stats.h"
#include "unwind/stacks/stack_store.h"

#define OWN_WRAPPERS_MAX 64

/* A function; the strings belong to the store of the stacks. */
struct own_wrapper {
	const char *function, *module;
};

/* Zero it before use; it owns nothing. */
struct own_wrappers {
	struct own_wrapper list[OWN_WRAPPERS_MAX];
	size_t nr;
};

struct own_wrappers_input {
	const struct site *sites;
	size_t nr_sites;
	/* For each of them, whether its blocks leak. NULL: not known; then what is held counts. */
	const bool *leaks;
	/*
	 * Fills @ret with the frames of a stack, innermost first, at most @max. Returns 0 or
	 * -ENOMEM.
	 */
	int (*frames_of)(void *stacks, uint32_t stack_id, struct stack_frame *ret, size_t max,
			 size_t *ret_nr);
	void *stacks;
};

/* Replaces the contents of @wrappers. Returns 0 or -ENOMEM. */
int own_wrappers_find(struct own_wrappers *wrappers, const struct own_wrappers_input *input);

/* For input.frames_of, where input.stacks is a stack_store. */
int own_wrappers_frames(void *store, uint32_t stack_id, struct stack_frame *ret, size_t max,
			size_t *ret_nr);

/* @wrappers and the names may be NULL. */
bool own_wrappers_has(const struct own_wrappers *wrappers, const char *function,
		      const char *module);

#endif
