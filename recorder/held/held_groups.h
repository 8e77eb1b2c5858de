/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists all held blocks by their stacks. */
#ifndef LEAKTOOLS_RECORDER_HELD_GROUPS_H
#define LEAKTOOLS_RECORDER_HELD_GROUPS_H

#include "recorder/held/held_blocks.h"
#include "recorder/held/held_stacks.h"

/* Blocks of one process and one stack. */
struct held_group {
	pid_t pid;
	struct held_stack stack;
	const uint64_t *values; /* of each block: its address, its size, its time */
	size_t nr;
};

#define HELD_GROUP_VALUES 3

/*
 * Calls @visit for all blocks in groups of @max at most, until it returns another value than 0.
 * Blocks without a stack are left out. @held keeps stacks (held_blocks_keep_stacks()). Returns that
 * value, 0 or -ENOMEM.
 */
int held_groups_visit(const struct held_blocks *held, size_t max,
		      int (*visit)(void *context, const struct held_group *group), void *context);

#endif
