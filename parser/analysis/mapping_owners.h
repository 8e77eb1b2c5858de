/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the owner of a mapping by the stack of its system call: the program, or the runtime (the
 * allocator, the loader or the C library). It is the runtime (docs/mappings.md) if
 *
 *   - a frame is an allocator's function, or creates a thread
 *   - or the caller of the system call's wrapper is in the C library, the loader or an allocator's
 *     library
 */
#ifndef LEAKTOOLS_PARSER_MAPPING_OWNERS_H
#define LEAKTOOLS_PARSER_MAPPING_OWNERS_H

#include "parser/calls/heap_tracker.h"
#include "unwind/stacks/stack_store.h"

/* The owners found so far, by stack. Zero it before use. */
struct mapping_owners {
	uint8_t *of_stack; /* enum mapping_owner + 1; 0: not known yet */
	size_t nr;
};

void mapping_owners_deinit(struct mapping_owners *owners);

/* Finds the owner of a mapping made by @stack_id. Returns 0 or -ENOMEM. */
int mapping_owners_find(struct mapping_owners *owners, struct stack_store *stacks,
			uint32_t stack_id, enum mapping_owner *ret);

#endif
