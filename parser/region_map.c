/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A balanced tree (tsearch(3)) of regions, which compare equal where they overlap: those in the
 * tree never do, so it is ordered, and a search for a range finds some region in it.
 */
#include "parser/region_map.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

struct region_map {
	void *root;
	size_t nr;
	uint64_t end_of_break;
};

void region_cuts_deinit(struct region_cuts *cuts)
{
	free(cuts->list);
	*cuts = (struct region_cuts){0};
}

static int add_cut(struct region_cuts *cuts, const struct region_cut *cut)
{
	if (cuts->nr == cuts->capacity) {
		size_t capacity = cuts->capacity ? 2 * cuts->capacity : 4;
		struct region_cut *list = reallocarray(cuts->list, capacity, sizeof(*list));

		if (!list)
			return -ENOMEM;
		cuts->list = list;
		cuts->capacity = capacity;
	}
	cuts->list[cuts->nr++] = *cut;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (x->end <= y->start)
		return -1;
	return x->start >= y->end;
}

struct region_map *region_map_create(void)
{
	return calloc(1, sizeof(struct region_map));
}

void region_map_destroy(struct region_map *map)
{
	if (!map)
		return;
	tdestroy(map->root, free);
	free(map);
}

int region_map_add(struct region_map *map, const struct region *region)
{
	struct region *copy = malloc(sizeof(*copy)), **found;

	if (!copy)
		return -ENOMEM;
	*copy = *region;
	found = tsearch(copy, &map->root, compare);
	if (!found || *found != copy) {
		free(copy);
		return found ? -EEXIST : -ENOMEM;
	}
	map->nr++;
	return 0;
}

static struct region *find_in(const struct region_map *map, uint64_t start, uint64_t end)
{
	const struct region key = {.start = start, .end = end};
	struct region *const *found;

	if (start >= end)
		return NULL;
	found = tfind(&key, &map->root, compare);
	return found ? *found : NULL;
}

/* The lowest region in the range. */
static struct region *find_first_in(const struct region_map *map, uint64_t start, uint64_t end)
{
	struct region *found = find_in(map, start, end), *lower = found;

	while (lower && lower->start > start) {
		lower = find_in(map, start, lower->start);
		if (lower)
			found = lower;
	}
	return found;
}

static void delete_region(struct region_map *map, struct region *region)
{
	tdelete(region, &map->root, compare);
	free(region);
	map->nr--;
}

/* Leaves what of @region lies outside of the cut. */
static int cut_out(struct region_map *map, struct region *region, const struct region_cut *cut)
{
	struct region right = cut->whole;

	right.start = cut->end;
	if (cut->start == cut->whole.start && cut->end == cut->whole.end) {
		delete_region(map, region);
		return 0;
	}
	/* A region that becomes smaller keeps its place in the order. */
	if (cut->start == cut->whole.start) {
		region->start = cut->end;
		return 0;
	}
	region->end = cut->start;
	return cut->end < cut->whole.end ? region_map_add(map, &right) : 0;
}

int region_map_take(struct region_map *map, uint64_t start, uint64_t end, struct region_cuts *cuts)
{
	struct region *region;
	int err = 0;

	while (!err && (region = find_first_in(map, start, end))) {
		const struct region_cut cut = {
			.whole = *region,
			.start = region->start > start ? region->start : start,
			.end = region->end < end ? region->end : end,
		};

		err = add_cut(cuts, &cut);
		if (!err)
			err = cut_out(map, region, &cut);
		start = cut.end;
	}
	return err;
}

/* Takes the region at @address into @join, if it is of the same origin as what that has. */
static void join_neighbour(struct region_map *map, uint64_t address, struct region_join *join)
{
	struct region *neighbour = address < UINT64_MAX ? find_in(map, address, address + 1) : NULL;

	if (!neighbour || neighbour->mapped.sequence != join->whole.mapped.sequence)
		return;
	join->parts[join->nr_parts++] = *neighbour;
	if (neighbour->start < join->whole.start)
		join->whole.start = neighbour->start;
	if (neighbour->end > join->whole.end)
		join->whole.end = neighbour->end;
	delete_region(map, neighbour);
}

int region_map_put_back(struct region_map *map, const struct region_cut *cut,
			struct region_join *ret)
{
	*ret = (struct region_join){.whole = cut->whole};
	if (find_in(map, cut->start, cut->end))
		return 0;
	ret->whole.start = cut->start;
	ret->whole.end = cut->end;
	ret->parts[ret->nr_parts++] = ret->whole;
	if (cut->start > 0)
		join_neighbour(map, cut->start - 1, ret);
	join_neighbour(map, cut->end, ret);
	return region_map_add(map, &ret->whole);
}

const struct region *region_map_find(const struct region_map *map, uint64_t address)
{
	return address < UINT64_MAX ? find_in(map, address, address + 1) : NULL;
}

const struct region *region_map_find_in(const struct region_map *map, uint64_t start, uint64_t end)
{
	return find_in(map, start, end);
}

size_t region_map_nr(const struct region_map *map)
{
	return map->nr;
}

struct walk {
	void (*visit)(void *context, const struct region *region);
	void *context;
};

static void visit_node(const void *node, VISIT which, void *closure)
{
	const struct walk *walk = closure;

	if (which == postorder || which == leaf)
		walk->visit(walk->context, *(struct region *const *)node);
}

void region_map_for_each(const struct region_map *map,
			 void (*visit)(void *context, const struct region *region), void *context)
{
	struct walk walk = {visit, context};

	twalk_r(map->root, visit_node, &walk);
}

/* Regions on their way into another map. */
struct copying {
	struct region_map *to;
	bool for_child;
	int err;
};

static void copy_region(void *context, const struct region *region)
{
	struct copying *copying = context;
	struct region copy = *region;

	if (copying->err || (!copying->for_child && region->inherited))
		return;
	copy.inherited = copying->for_child;
	copying->err = region_map_add(copying->to, &copy);
}

struct region_map *region_map_copy(const struct region_map *map)
{
	struct copying copying = {.to = region_map_create(), .for_child = true};

	if (!copying.to)
		return NULL;
	copying.to->end_of_break = map->end_of_break;
	region_map_for_each(map, copy_region, &copying);
	if (copying.err) {
		region_map_destroy(copying.to);
		return NULL;
	}
	return copying.to;
}

int region_map_bury(struct region_map *map)
{
	struct copying copying = {.to = region_map_create()};
	struct region_map old = *map;

	if (!copying.to)
		return -ENOMEM;
	region_map_for_each(map, copy_region, &copying);
	*map = *copying.to;
	*copying.to = old;
	region_map_destroy(copying.to);
	return copying.err;
}

uint64_t region_map_break(const struct region_map *map)
{
	return map->end_of_break;
}

void region_map_set_break(struct region_map *map, uint64_t address)
{
	map->end_of_break = address;
}
