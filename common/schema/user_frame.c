/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/user_frame.h"

#include "common/schema/resource_schema.h"
#include "common/schema/wrapper_names.h"

#include <string.h>

/* "(truncated)", "(incomplete: ...)", "(elsewhere)": not "(anonymous namespace)::f". */
static bool is_mark(const char *name)
{
	return strncmp(name, "(truncated", 10) == 0 || strncmp(name, "(incomplete", 11) == 0 ||
	       strncmp(name, "(elsewhere", 10) == 0;
}

static bool is_user(struct user_frame_search *search, const struct frame_facts *frame)
{
	bool is_allocator = !frame->has_symbol && frame->module && search->allocator_module &&
			    strcmp(frame->module, search->allocator_module) == 0;

	/* Where Go leaves the goroutine's stack, unwinding goes on with wrong frames.
	 */
	bool is_junk = search->is_cgo && (!frame->module || strncmp(frame->name, "runtime.",
								    strlen("runtime.")) == 0);

	if (is_allocator || is_junk || is_mark(frame->name) || frame->is_own_wrapper)
		return false;
	switch (wrapper_names_find(frame->name, frame->module)) {
	case WRAPPER_NONE:
		return true;
	case WRAPPER_ANYWHERE:
		return false;
	case WRAPPER_OF_RUST:
		search->is_rust = true;
		return false;
	case WRAPPER_OF_CGO:
		search->is_cgo = true;
		return false;
	case WRAPPER_IN_RUST:
		return !search->is_rust;
	}
	return true;
}

bool user_frame_is_better(struct user_frame_search *search, const struct frame_facts *frame)
{
	if (search->is_over)
		return false;
	switch (search->at) {
	case BEFORE_INNERMOST:
		search->allocator_module = frame->module;
		search->is_over = search->is_pool;
		search->at = frame->inlined ? IN_ALLOCATOR : BEFORE_CALLER;
		return true;
	case IN_ALLOCATOR: /* functions that were inlined into the allocation function */
		search->at = frame->inlined ? IN_ALLOCATOR : BEFORE_CALLER;
		return false;
	case BEFORE_CALLER:
		search->is_over = is_user(search, frame);
		search->at = IN_CALLERS;
		return true;
	case IN_CALLERS:
		search->is_over = is_user(search, frame);
		return search->is_over;
	}
	return false;
}

bool user_frame_is_pool(const char *function)
{
	return function && strcmp(function, RESOURCE_POOL_GIVES) == 0;
}
