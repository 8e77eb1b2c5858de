/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/heap_space.h"

#include "parser/heap/resource_key.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

static struct heap_space *add_space(struct heap_spaces *spaces)
{
	struct heap_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->spaces = spaces;
	space->nr_users = 1;
	DL_APPEND(spaces->all, space);
	return space;
}

static void list_active(struct heap_space *space)
{
	if (space->is_active)
		return;
	space->is_active = true;
	DL_APPEND2(space->spaces->active, space, prev_active, next_active);
}

static void unlist_active(struct heap_space *space)
{
	if (space->is_active)
		DL_DELETE2(space->spaces->active, space, prev_active, next_active);
	space->is_active = false;
}

struct heap_space *heap_spaces_take_active(struct heap_spaces *spaces)
{
	struct heap_space *space = spaces->active;

	if (space)
		unlist_active(space);
	return space;
}

static void delete_space(struct heap_spaces *spaces, struct heap_space *space)
{
	unlist_active(space);
	DL_DELETE(spaces->all, space);
	heap_destroy(space->heap);
	region_map_destroy(space->regions);
	free(space);
}

void heap_spaces_deinit(struct heap_spaces *spaces)
{
	while (spaces->all)
		delete_space(spaces, spaces->all);
}

struct heap_space *heap_space_create(struct heap_spaces *spaces)
{
	return add_space(spaces);
}

struct heap_space *heap_space_fork(struct heap_spaces *spaces, struct heap_space *source)
{
	struct heap_space *space = add_space(spaces);

	if (!space)
		return NULL;
	/* A source that has not changed since its own fork stands for its source. */
	while (source->source)
		source = source->source;
	if (source->heap) {
		space->source = source;
		DL_APPEND2(source->copies, space, prev_copy, next_copy);
	}
	return space;
}

static void detach_copy(struct heap_space *copy)
{
	if (!copy->source)
		return;
	DL_DELETE2(copy->source->copies, copy, prev_copy, next_copy);
	copy->source = NULL;
}

static int make_copy(struct heap_space *copy, struct heap_space *source)
{
	struct region_map *regions = NULL;
	struct heap *heap = heap_copy(source->heap);

	if (source->regions)
		regions = region_map_copy(source->regions);
	if (!heap || (source->regions && !regions)) {
		heap_destroy(heap);
		region_map_destroy(regions);
		return -ENOMEM;
	}
	detach_copy(copy);
	copy->heap = heap;
	copy->regions = regions;
	copy->is_copy = true;
	list_active(copy);
	return 0;
}

static int make_copies(struct heap_space *space)
{
	while (space->copies) {
		int err = make_copy(space->copies, space);

		if (err)
			return err;
	}
	return 0;
}

int heap_space_open(struct heap_space *space, struct heap **ret)
{
	int err = space->source ? make_copy(space, space->source) : make_copies(space);

	if (err)
		return err;
	if (!space->heap)
		space->heap = heap_create(&space->spaces->memory);
	if (!space->heap)
		return -ENOMEM;
	list_active(space);
	*ret = space->heap;
	return 0;
}

struct held_memory heap_space_held_memory(const struct heap_space *space)
{
	const struct heap *heap = space->source ? space->source->heap : space->heap;

	return heap ? heap_held_memory(heap) : (struct held_memory){0};
}

int heap_space_regions(struct heap_space *space, struct region_map **ret)
{
	if (!space->regions)
		space->regions = region_map_create(&space->spaces->memory);
	*ret = space->regions;
	return *ret ? 0 : -ENOMEM;
}

void heap_space_get(struct heap_space *space)
{
	space->nr_users++;
}

int heap_space_bury(struct heap_space *space)
{
	int err = make_copies(space);

	if (err)
		return err;
	detach_copy(space);
	space->is_copy = false;
	err = space->heap ? heap_bury(space->heap) : 0;
	return !err && space->regions ? region_map_bury(space->regions) : err;
}

/* The memory without all copies. */
static size_t bytes_without_copies(const struct heap_spaces *spaces)
{
	const struct heap_space *space = NULL;
	size_t bytes = 0;

	DL_FOREACH (spaces->all, space) {
		if (space->is_copy)
			continue;
		bytes += space->heap ? heap_size_bytes(space->heap) : 0;
		bytes += space->regions ? region_map_size_bytes(space->regions) : 0;
	}
	return bytes;
}

int heap_spaces_limit(struct heap_spaces *spaces)
{
	size_t max = spaces->max_copied_bytes ? spaces->max_copied_bytes : MAX_COPIED_BYTES;
	size_t others = bytes_without_copies(spaces);
	struct heap_space *space = NULL;
	int err = 0;

	if (spaces->memory.bytes > others + max) {
		DL_FOREACH (spaces->all, space) {
			if (err || spaces->memory.bytes <= others + max / 2)
				break;
			if (!space->is_copy)
				continue;
			spaces->nr_forgotten++;
			err = heap_space_bury(space);
		}
		others = bytes_without_copies(spaces);
	}
	spaces->limit_at = others + max;
	if (spaces->limit_at < spaces->memory.bytes)
		spaces->limit_at = spaces->memory.bytes + max / 2;
	return err;
}

struct own_sum {
	uint64_t nr, bytes;
};

static void add_own(void *context, const struct region *region)
{
	struct own_sum *sum = context;

	if (!region->is_own)
		return;
	sum->nr++;
	sum->bytes += region->end - region->start;
}

bool heap_space_remove_empty(struct heap_spaces *spaces, struct heap_space *space)
{
	struct own_sum own = {0};

	if (space->regions)
		region_map_for_each_own(space->regions, add_own, &own);
	if ((space->heap && heap_nr_blocks(space->heap)) ||
	    (space->regions && region_map_nr(space->regions) > own.nr))
		return false;
	spaces->nr_gone_own += own.nr;
	spaces->gone_own_bytes += own.bytes;
	delete_space(spaces, space);
	return true;
}

int heap_space_put(struct heap_spaces *spaces, struct heap_space *space)
{
	int err;

	if (--space->nr_users > 0)
		return 0;
	err = heap_space_bury(space);
	if (!err)
		heap_space_remove_empty(spaces, space);
	return err;
}

/* The region as a heap would store it. */
static struct heap_block held_block_of(const struct region *region)
{
	struct heap_block block = region_block(region);

	block.address = resource_key(resource_call_of(region->mapped.schema)->kind, region->start);
	return block;
}

struct visiting {
	int (*visit)(void *context, const struct heap_block *block);
	void *context;
	int err;
};

static void visit_region(void *context, const struct region *region)
{
	struct visiting *visiting = context;
	const struct heap_block block = held_block_of(region);

	if (!region->is_own && !visiting->err)
		visiting->err = visiting->visit(visiting->context, &block);
}

int heap_space_for_each(const struct heap_space *space,
			int (*visit)(void *context, const struct heap_block *block), void *context)
{
	struct visiting visiting = {.visit = visit, .context = context};

	if (space->heap)
		visiting.err = heap_for_each(space->heap, visit, context);
	if (!visiting.err && space->regions)
		region_map_for_each_own(space->regions, visit_region, &visiting);
	return visiting.err;
}

int heap_space_drop(struct heap_spaces *spaces, struct heap_space *space,
		    int (*visit)(void *context, const struct heap_block *block), void *context)
{
	int err;

	if (--space->nr_users > 0)
		return 0;
	/* Forgets what was inherited. */
	err = heap_space_bury(space);
	if (!err)
		err = heap_space_for_each(space, visit, context);
	delete_space(spaces, space);
	return err;
}

struct block_list {
	struct heap_block *blocks;
	size_t nr;
};

static void add_held(void *context, const struct heap_block *block)
{
	struct block_list *list = context;

	list->blocks[list->nr++] = *block;
}

static void add_region(void *context, const struct region *region)
{
	const struct heap_block block = held_block_of(region);

	if (!region->is_own)
		add_held(context, &block);
}

static int compare_by_time(const void *a, const void *b)
{
	const struct heap_op *x = &((const struct heap_block *)a)->allocated;
	const struct heap_op *y = &((const struct heap_block *)b)->allocated;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void count_block(void *context, const struct heap_block *block)
{
	++*(size_t *)context;
}

static void count_region(void *context, const struct region *region)
{
	++*(size_t *)context;
}

/* The maximum size of the list; at least 1, because calloc(0) may return NULL. */
static size_t max_held(const struct heap_spaces *spaces)
{
	const struct heap_space *space = NULL;
	size_t max = 1;

	DL_FOREACH (spaces->all, space) {
		if (space->heap)
			heap_for_each_own(space->heap, count_block, &max);
		if (space->regions)
			region_map_for_each_own(space->regions, count_region, &max);
	}
	return max;
}

int heap_spaces_list_held(const struct heap_spaces *spaces, struct heap_block **ret, size_t *ret_nr)
{
	const struct heap_space *space = NULL;
	struct block_list list = {.blocks = calloc(max_held(spaces), sizeof(*list.blocks))};

	if (!list.blocks)
		return -ENOMEM;
	DL_FOREACH (spaces->all, space) {
		if (space->heap)
			heap_for_each_own(space->heap, add_held, &list);
		if (space->regions)
			region_map_for_each_own(space->regions, add_region, &list);
	}
	qsort(list.blocks, list.nr, sizeof(*list.blocks), compare_by_time);
	*ret = list.blocks;
	*ret_nr = list.nr;
	return 0;
}

int heap_spaces_move_held(struct heap_spaces *spaces, struct heap_block **ret, size_t *ret_nr)
{
	struct heap_space *space = NULL;
	struct block_list list = {.blocks = calloc(max_held(spaces), sizeof(*list.blocks))};

	if (!list.blocks)
		return -ENOMEM;
	/* Children come after their parents, so shared pages are freed with their last user. */
	for (space = spaces->all ? spaces->all->prev : NULL; space;
	     space = space == spaces->all ? NULL : space->prev) {
		if (space->heap)
			heap_drain(space->heap, add_held, &list);
		if (space->regions)
			region_map_for_each_own(space->regions, add_region, &list);
		region_map_destroy(space->regions);
		space->regions = NULL;
	}
	qsort(list.blocks, list.nr, sizeof(*list.blocks), compare_by_time);
	*ret = list.blocks;
	*ret_nr = list.nr;
	return 0;
}

void heap_spaces_sum_own(const struct heap_spaces *spaces, uint64_t *ret_nr, uint64_t *ret_bytes)
{
	const struct heap_space *space = NULL;
	struct own_sum sum = {spaces->nr_gone_own, spaces->gone_own_bytes};

	DL_FOREACH (spaces->all, space)
		if (space->regions)
			region_map_for_each_own(space->regions, add_own, &sum);
	*ret_nr = sum.nr;
	*ret_bytes = sum.bytes;
}
