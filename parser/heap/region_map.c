/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A treap: a search tree by address. Its nodes have random priorities, and a parent's is never
 * lower than its children's, so the tree is balanced whatever the order of insertion.
 *
 * A copy for a forked child has the same nodes until either side changes something, which copies
 * the path from the root to the change. As in shared_pages.h, a node has the depth of the map that
 * changed it last. A node of another depth was inherited, and so were all nodes below it.
 */
#include "parser/heap/region_map.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

struct node {
	struct region region;
	struct node *left, *right;
	uint64_t depth;
	uint32_t priority;
	uint32_t refs; /* maps and nodes that refer to it */
};

struct region_map {
	struct node *root;
	size_t nr;
	uint64_t end_of_break;
	uint64_t depth; /* forks between the first map and this one */
	uint64_t random;
	struct shared_memory *memory;
};

struct heap_block region_block(const struct region *region)
{
	return (struct heap_block){
		.address = region->start,
		.size_bytes = region->end - region->start,
		.size_known = true,
		.inherited = region->inherited,
		.allocated = region->mapped,
	};
}

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

struct region_map *region_map_create(struct shared_memory *memory)
{
	struct region_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->memory = memory;
	map->random = hash_seed() | 1;
	return map;
}

static void put_node(struct region_map *map, struct node *node)
{
	if (!node || --node->refs)
		return;
	put_node(map, node->left);
	put_node(map, node->right);
	map->memory->bytes -= sizeof(*node);
	free(node);
}

void region_map_destroy(struct region_map *map)
{
	if (!map)
		return;
	put_node(map, map->root);
	free(map);
}

static struct node *new_node(struct region_map *map, const struct region *region)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	map->random ^= map->random << 13;
	map->random ^= map->random >> 7;
	map->random ^= map->random << 17;
	*node = (struct node){
		.region = *region,
		.depth = map->depth,
		.priority = (uint32_t)(map->random >> 32),
		.refs = 1,
	};
	map->memory->bytes += sizeof(*node);
	return node;
}

/* Makes the node at @link, if any, the map's own. */
static int own(struct region_map *map, struct node **link)
{
	struct node *node = *link, *copy;

	if (!node || (node->refs == 1 && node->depth == map->depth))
		return 0;
	if (node->refs > 1) {
		copy = new_node(map, &node->region);
		if (!copy)
			return -ENOMEM;
		copy->priority = node->priority;
		copy->left = node->left;
		copy->right = node->right;
		if (copy->left)
			copy->left->refs++;
		if (copy->right)
			copy->right->refs++;
		node->refs--;
		*link = copy;
	}
	(*link)->region.inherited |= node->depth != map->depth;
	(*link)->depth = map->depth;
	return 0;
}

/* Makes the nodes on the way from @link to @address the map's own. */
static int own_path(struct region_map *map, struct node **link, uint64_t address)
{
	int err = own(map, link);

	while (!err && *link) {
		const struct region *region = &(*link)->region;

		if (address >= region->start && address < region->end)
			break;
		link = address < region->start ? &(*link)->left : &(*link)->right;
		err = own(map, link);
	}
	return err;
}

/* Splits the tree @at, whose nodes on the path are the map's own, at @address. */
static void split(struct node *at, uint64_t address, struct node **left, struct node **right)
{
	while (at) {
		if (at->region.start < address) {
			*left = at;
			left = &at->right;
			at = *left;
		} else {
			*right = at;
			right = &at->left;
			at = *right;
		}
	}
	*left = *right = NULL;
}

/* Any region in the range. */
static const struct region *find_in(const struct region_map *map, uint64_t start, uint64_t end)
{
	const struct node *node = map->root;

	if (start >= end)
		return NULL;
	while (node) {
		if (node->region.end <= start)
			node = node->right;
		else if (node->region.start >= end)
			node = node->left;
		else
			return &node->region;
	}
	return NULL;
}

int region_map_add(struct region_map *map, const struct region *region)
{
	struct node **link = &map->root, *node;

	if (find_in(map, region->start, region->end))
		return -EEXIST;
	if (own_path(map, link, region->start))
		return -ENOMEM;
	node = new_node(map, region);
	if (!node)
		return -ENOMEM;
	while (*link && (*link)->priority >= node->priority)
		link = region->start < (*link)->region.start ? &(*link)->left : &(*link)->right;
	split(*link, region->start, &node->left, &node->right);
	*link = node;
	map->nr++;
	return 0;
}

/* The lowest region in the range. */
static const struct region *find_first_in(const struct region_map *map, uint64_t start,
					  uint64_t end)
{
	const struct region *found = find_in(map, start, end), *lower = found;

	while (lower && lower->start > start) {
		lower = find_in(map, start, lower->start);
		if (lower)
			found = lower;
	}
	return found;
}

/*
 * The link to the region at @address, which must exist; makes it the map's own. NULL: out of
 * memory.
 */
static struct node **own_region(struct region_map *map, uint64_t address)
{
	struct node **link = &map->root;

	if (own_path(map, link, address))
		return NULL;
	while (address < (*link)->region.start || address >= (*link)->region.end)
		link = address < (*link)->region.start ? &(*link)->left : &(*link)->right;
	return link;
}

/* Makes the nodes along a side of @link's tree the map's own. */
static int own_side(struct region_map *map, struct node **link, bool is_left)
{
	int err = own(map, link);

	while (!err && *link) {
		link = is_left ? &(*link)->left : &(*link)->right;
		err = own(map, link);
	}
	return err;
}

/* Replaces the node at @link by its two subtrees, merged. */
static int delete_node(struct region_map *map, struct node **link)
{
	struct node *node = *link, *left, *right;

	if (own_side(map, &node->left, false) || own_side(map, &node->right, true))
		return -ENOMEM;
	left = node->left;
	right = node->right;
	while (left && right) {
		if (left->priority > right->priority) {
			*link = left;
			link = &left->right;
			left = *link;
		} else {
			*link = right;
			link = &right->left;
			right = *link;
		}
	}
	*link = left ? left : right;
	node->left = node->right = NULL;
	put_node(map, node);
	map->nr--;
	return 0;
}

/* Cuts a range out of the region at @link. */
static int cut_out(struct region_map *map, struct node **link, const struct region_cut *cut)
{
	struct region *region = &(*link)->region;
	struct region right = cut->whole;

	right.start = cut->end;
	if (cut->start == cut->whole.start && cut->end == cut->whole.end)
		return delete_node(map, link);
	/* A smaller region keeps its position in the order. */
	if (cut->start == cut->whole.start) {
		region->start = cut->end;
		return 0;
	}
	region->end = cut->start;
	return cut->end < cut->whole.end ? region_map_add(map, &right) : 0;
}

int region_map_remove(struct region_map *map, uint64_t start, uint64_t end,
		      struct region_cuts *cuts)
{
	const struct region *region;
	int err = 0;

	while (!err && (region = find_first_in(map, start, end))) {
		struct node **link = own_region(map, region->start);
		struct region_cut cut;

		if (!link)
			return -ENOMEM;
		region = &(*link)->region;
		cut = (struct region_cut){
			.whole = *region,
			.start = region->start > start ? region->start : start,
			.end = region->end < end ? region->end : end,
		};
		err = add_cut(cuts, &cut);
		if (!err)
			err = cut_out(map, link, &cut);
		start = cut.end;
	}
	return err;
}

/* Merges the region at @address into @join, if it has the same origin. */
static int join_neighbour(struct region_map *map, uint64_t address, struct region_join *join)
{
	const struct region *found =
		address < UINT64_MAX ? find_in(map, address, address + 1) : NULL;
	struct node **link;
	struct region neighbour;

	if (!found || found->mapped.sequence != join->whole.mapped.sequence)
		return 0;
	link = own_region(map, address);
	if (!link)
		return -ENOMEM;
	neighbour = (*link)->region;
	join->parts[join->nr_parts++] = neighbour;
	if (neighbour.start < join->whole.start)
		join->whole.start = neighbour.start;
	if (neighbour.end > join->whole.end)
		join->whole.end = neighbour.end;
	return delete_node(map, link);
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
	if ((cut->start > 0 && join_neighbour(map, cut->start - 1, ret)) ||
	    join_neighbour(map, cut->end, ret))
		return -ENOMEM;
	return region_map_add(map, &ret->whole);
}

size_t region_map_size_bytes(const struct region_map *map)
{
	return map->nr * sizeof(struct node);
}

size_t region_map_nr(const struct region_map *map)
{
	return map->nr;
}

/* No node of the map's own is below an inherited one. */
static void visit_own(const struct region_map *map, const struct node *node,
		      void (*visit)(void *context, const struct region *region), void *context)
{
	if (!node || node->depth != map->depth)
		return;
	visit_own(map, node->left, visit, context);
	if (!node->region.inherited)
		visit(context, &node->region);
	visit_own(map, node->right, visit, context);
}

void region_map_for_each_own(const struct region_map *map,
			     void (*visit)(void *context, const struct region *region),
			     void *context)
{
	visit_own(map, map->root, visit, context);
}

struct region_map *region_map_copy(const struct region_map *map)
{
	struct region_map *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *map;
	copy->depth++;
	if (copy->root)
		copy->root->refs++;
	return copy;
}

struct burial {
	struct region_map kept;
	int err;
};

static void keep_region(void *context, const struct region *region)
{
	struct burial *burial = context;

	if (!burial->err)
		burial->err = region_map_add(&burial->kept, region);
}

int region_map_bury(struct region_map *map)
{
	struct burial burial = {.kept = *map};

	burial.kept.root = NULL;
	burial.kept.nr = 0;
	burial.kept.end_of_break = 0;
	region_map_for_each_own(map, keep_region, &burial);
	put_node(map, map->root);
	*map = burial.kept;
	return burial.err;
}

uint64_t region_map_break(const struct region_map *map)
{
	return map->end_of_break;
}

void region_map_set_break(struct region_map *map, uint64_t address)
{
	map->end_of_break = address;
}
