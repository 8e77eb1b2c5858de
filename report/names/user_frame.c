/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/user_frame.h"

#include "common/schema/wrapper_names.h"

/* The index of the allocation function's caller; stack->nr if it has none. */
static size_t caller_of(const struct named_stack *stack)
{
	size_t i = 0;

	/* Functions inlined into the allocation function come before it. */
	while (i < stack->nr && stack->frames[i].inlined)
		i++;
	return i < stack->nr ? i + 1 : stack->nr;
}

size_t user_frame_find(const struct named_stack *stack)
{
	size_t caller = caller_of(stack);

	for (size_t i = caller; i < stack->nr; i++) {
		const struct named_frame *frame = &stack->frames[i];
		bool is_allocator = !frame->has_symbol && frame->module &&
				    frame->module == stack->frames[0].module;

		if (!is_allocator && !wrapper_names_have(frame->name))
			return i;
	}
	return caller < stack->nr ? caller : 0;
}
