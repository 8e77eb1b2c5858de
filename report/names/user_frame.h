/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which frame of a stack asked for the memory; reports name the stack after it. */
#ifndef LEAKTOOLS_REPORT_USER_FRAME_H
#define LEAKTOOLS_REPORT_USER_FRAME_H

#include "report/names/named_stack.h"

/*
 * The index of the user's frame: the first one after the allocation function that neither is a
 * known wrapper (common/schema/wrapper_names.h) nor code without a symbol in the allocator's own
 * module. If there is none, the caller of the allocation function; 0 if that has no caller.
 */
size_t user_frame_find(const struct named_stack *stack);

#endif
