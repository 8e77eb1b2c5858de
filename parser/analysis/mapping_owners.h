/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who needs what is mapped: the program, or the allocator, the loader or the C library for
 * itself. The stack of the system call tells (docs/mappings.md):
 *
 *   - a frame of an allocator's function, or of the creation of a thread
 *   - or whoever called the system call's wrapper is the C library, the loader or an allocator's
 *     library
 */
#ifndef LEAKTOOLS_PARSER_MAPPING_OWNERS_H
#define LEAKTOOLS_PARSER_MAPPING_OWNERS_H

#include "parser/calls/heap_tracker.h"
#include "unwind/stacks/stack_store.h"

/* What is known already, by stack. Zeroed, it is empty. */
struct mapping_owners {
	uint8_t *of_stack; /* enum mapping_owner + 1; 0: not asked yet */
	size_t nr;
};

void mapping_owners_deinit(struct mapping_owners *owners);

/* Returns 0 or -ENOMEM. */
int mapping_owners_find(struct mapping_owners *owners, struct stack_store *stacks,
			uint32_t stack_id, enum mapping_owner *ret);

/* The same of a frame's names, each perhaps NULL: for the tests. */
bool mapping_owner_is_allocator(const char *function);
bool mapping_owner_is_wrapper(const char *function);
bool mapping_owner_is_runtime(const char *module);

#endif
