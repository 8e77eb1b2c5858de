/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/nearest_roots.h"

#include "common/scope.h"
#include "scan/marking/interior_pointers.h"

#include <errno.h>
#include <stdlib.h>

struct search {
	const struct marking *marking;
	const struct root_groups *groups;
	uint16_t *group_of; /* by block */
	/* Blocks with a group, the nearest first. Each is there once. */
	uint32_t *queue;
	size_t first, end;
};

/* The held block without a group that @value leads to, as marking sees it; or HEAP_NONE. */
static inline uint32_t next_block(const struct search *search, uint64_t value)
{
	const struct heap *heap = search->marking->heap;
	struct heap_block_view view;
	uint64_t offset;
	uint32_t block;
	uint8_t state;

	if (value < heap->map.lowest || value >= heap->map.highest)
		return HEAP_NONE;
	block = heap_find_block(heap, value, &offset);
	if (block == HEAP_NONE || search->group_of[block] != NEAREST_NONE)
		return HEAP_NONE;
	state = search->marking->states[block];
	if (!(state & (MARK_HELD | MARK_POSSIBLE)))
		return HEAP_NONE;
	if (!offset || !(state & MARK_HELD))
		return block;
	heap_block_view(heap, block, &view);
	return interior_pointer_is_sure(heap->snapshot, &view, offset) ? block : HEAP_NONE;
}

static void add(struct search *search, uint32_t block, uint16_t group)
{
	if (group == NEAREST_NONE)
		return;
	search->group_of[block] = group;
	search->queue[search->end++] = block;
}

static void search_range(struct search *search, const struct root_range *range)
{
	const struct root_groups *groups = search->groups;
	uint64_t step = range->kind == ROOT_CODE ? 1 : 8;

	for (uint64_t at = 0; at + 8 <= range->size_bytes; at += step) {
		uint32_t block = next_block(search, load_word(range->bytes + at));

		if (block != HEAP_NONE)
			add(search, block, groups->group_of(groups->context, range, at));
	}
}

static void search_words(struct search *search, const struct heap_block_view *view, uint64_t at,
			 uint64_t end, uint16_t group)
{
	for (; at + 8 <= end; at += 8) {
		uint32_t next = next_block(search, load_word(view->bytes + at));

		if (next != HEAP_NONE)
			add(search, next, group);
	}
}

static void search_blocks(struct search *search)
{
	while (search->first < search->end) {
		uint32_t block = search->queue[search->first++];
		struct heap_block_view view;

		heap_block_view(search->marking->heap, block, &view);
		for (uint64_t at = 0, end; heap_block_next(search->marking->heap, &view, &at, &end);
		     at = end)
			search_words(search, &view, at, end, search->group_of[block]);
	}
}

int nearest_roots_find(const struct marking *marking, const struct root_groups *groups,
		       uint16_t **ret)
{
	const struct roots *roots = marking->roots;
	size_t nr_blocks = marking->heap->map.nr_blocks;
	_cleanup_free_ uint16_t *group_of = calloc(nr_blocks + 1, sizeof(*group_of));
	_cleanup_free_ uint32_t *queue = calloc(nr_blocks + 1, sizeof(*queue));
	struct search search = {marking, groups, group_of, queue, 0, 0};

	if (!group_of || !queue)
		return -ENOMEM;
	for (unsigned rank = 0; rank < groups->nr_ranks; rank++) {
		for (size_t i = 0; i < roots->nr; i++)
			if (groups->rank_of(groups->context, &roots->ranges[i]) == rank)
				search_range(&search, &roots->ranges[i]);
		search_blocks(&search);
	}
	*ret = steal_ptr(group_of);
	return 0;
}
