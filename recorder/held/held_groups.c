/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_groups.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

/* The blocks of a process as lists, one for each stack. */
struct lists {
	const struct held_block **blocks;
	uint32_t *next;	 /* of a block: the next one + 1 */
	uint32_t *first; /* of a stack, by its number: the first block + 1 */
	uint32_t *used;	 /* the stacks that have blocks */
	size_t nr_used;
	uint64_t *values; /* of a group */
};

struct visit {
	size_t max;
	int (*call)(void *context, const struct held_group *group);
	void *context;
};

/* Visits the blocks of the list that begins with @at, and empties it. */
static int visit_list(struct lists *lists, const struct visit *visit, struct held_group *group,
		      uint32_t at)
{
	int err = 0;

	while (at && !err) {
		for (group->nr = 0; at && group->nr < visit->max; group->nr++) {
			const struct held_block *block = lists->blocks[at - 1];
			uint64_t *values = &lists->values[HELD_GROUP_VALUES * group->nr];

			values[0] = block->address;
			values[1] = block->size_bytes;
			values[2] = block->time_ns;
			at = lists->next[at - 1];
		}
		err = visit->call(visit->context, group);
	}
	return err;
}

static int visit_process(struct lists *lists, const struct held_blocks *held, pid_t pid,
			 const struct visit *visit)
{
	struct held_group group = {.pid = pid, .values = lists->values};
	const struct held_block *block;
	size_t at = 0;
	int err = 0;

	lists->nr_used = 0;
	for (uint32_t nr = 0; (block = held_blocks_next(held, pid, &at));) {
		uint32_t *first = &lists->first[block->site];

		if (!block->site)
			continue;
		if (!*first)
			lists->used[lists->nr_used++] = (uint32_t)block->site;
		lists->blocks[nr] = block;
		lists->next[nr] = *first;
		*first = ++nr;
	}
	for (size_t i = 0; i < lists->nr_used; i++) {
		uint32_t *first = &lists->first[lists->used[i]];

		group.stack = held_stacks_get(held_blocks_stacks(held), lists->used[i]);
		if (!err)
			err = visit_list(lists, visit, &group, *first);
		*first = 0;
	}
	return err;
}

int held_groups_visit(const struct held_blocks *held, size_t max,
		      int (*visit)(void *context, const struct held_group *group), void *context)
{
	size_t nr_stacks = held_blocks_stacks(held)->nr + 1, most = 1;
	const struct visit how = {max, visit, context};
	pid_t pid = 0;
	int err = 0;

	while ((pid = held_blocks_next_process(held, pid)))
		most = held_blocks_nr(held, pid) > most ? held_blocks_nr(held, pid) : most;

	_cleanup_free_ const struct held_block **blocks =
		calloc(most, sizeof(const struct held_block *));
	_cleanup_free_ uint32_t *next = calloc(most, sizeof(*next));
	_cleanup_free_ uint32_t *first = calloc(nr_stacks, sizeof(*first));
	_cleanup_free_ uint32_t *used = calloc(nr_stacks, sizeof(*used));
	_cleanup_free_ uint64_t *values = calloc(max, HELD_GROUP_VALUES * sizeof(*values));
	struct lists lists = {blocks, next, first, used, 0, values};

	if (!blocks || !next || !first || !used || !values) {
		diag_error("cannot list the held blocks: out of memory");
		return -ENOMEM;
	}
	while (!err && (pid = held_blocks_next_process(held, pid)))
		err = visit_process(&lists, held, pid, &how);
	return err;
}
