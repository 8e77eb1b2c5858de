/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/path_details.h"

#include <stdlib.h>

/*
 * The @position-th frame to compare: first those from path->first outwards, then those inside it,
 * which are wrappers. NULL: there are fewer.
 */
static const struct named_frame *frame_at(const struct stack_path *path, size_t position,
					  size_t *ret_index)
{
	size_t nr = path->stack->nr, nr_outer = nr > path->first ? nr - path->first : 0;

	if (position >= nr)
		return NULL;
	*ret_index = position < nr_outer ? path->first + position : nr - 1 - position;
	return &path->stack->frames[*ret_index];
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Equal strings are equal pointers, and any order will do. */
static int compare_frames(const struct named_frame *a, const struct named_frame *b,
			  enum path_detail detail)
{
	int order;

	switch (detail) {
	case PATH_DETAIL_NONE:
		break;
	case PATH_DETAIL_NAME:
		return compare_numbers((uintptr_t)a->name, (uintptr_t)b->name);
	case PATH_DETAIL_LINE:
		order = compare_numbers((uintptr_t)a->file, (uintptr_t)b->file);
		return order ? order : compare_numbers((uint64_t)a->line, (uint64_t)b->line);
	case PATH_DETAIL_ADDRESS:
		if (a->module && b->module)
			return compare_numbers(a->module_offset, b->module_offset);
		return compare_numbers(a->address, b->address);
	}
	return 0;
}

/* Compares two stacks. *@ret_position gets that of the first frames that differ. */
static int compare_paths(const struct stack_path *a, const struct stack_path *b,
			 enum path_detail detail, size_t *ret_position)
{
	for (size_t position = 0;; position++) {
		size_t index;
		const struct named_frame *x = frame_at(a, position, &index);
		const struct named_frame *y = frame_at(b, position, &index);
		int order = x && y ? compare_frames(x, y, detail) : (x != NULL) - (y != NULL);

		*ret_position = position;
		if (order || !x)
			return order;
	}
}

struct comparison {
	const struct stack_path *paths;
	enum path_detail detail;
};

static int compare_indices(const void *a, const void *b, void *context)
{
	const struct comparison *comparison = context;
	size_t position;

	return compare_paths(&comparison->paths[*(const size_t *)a],
			     &comparison->paths[*(const size_t *)b], comparison->detail, &position);
}

static void add(const struct stack_path *path, size_t position, enum path_detail detail,
		struct path_details *to)
{
	size_t index;

	if (!frame_at(path, position, &index) || path_details_of(to, index) == detail)
		return;
	to->frames[to->nr] = index;
	to->details[to->nr++] = detail;
}

/*
 * The paths are sorted, so a path has most in common with its neighbours. It first differs from a
 * path further away where any two neighbours between them first differ.
 */
static void add_differences(const struct stack_path *paths, const size_t *group, size_t nr,
			    enum path_detail detail, struct path_details *ret)
{
	for (size_t i = 0; i < nr; i++) {
		for (int side = -1; side <= 1; side += 2) {
			struct path_details *details = &ret[group[i]];
			size_t least = SIZE_MAX, position;

			for (size_t k = i; least && details->nr < PATH_MAX_DETAILS &&
					   (side < 0 ? k > 0 : k + 1 < nr);
			     k += (size_t)side) {
				if (!compare_paths(&paths[group[k]],
						   &paths[group[k + (size_t)side]], detail,
						   &position) ||
				    position >= least)
					continue;
				least = position;
				add(&paths[group[i]], position, detail, details);
			}
		}
	}
}

static void find(const struct stack_path *paths, size_t *group, size_t nr, enum path_detail detail,
		 struct path_details *ret)
{
	struct comparison comparison = {paths, detail};
	size_t position, alike;

	qsort_r(group, nr, sizeof(*group), compare_indices, &comparison);
	add_differences(paths, group, nr, detail, ret);
	for (size_t i = 0; i < nr && detail < PATH_DETAIL_ADDRESS; i += alike) {
		alike = 1;
		while (i + alike < nr && compare_paths(&paths[group[i]], &paths[group[i + alike]],
						       detail, &position) == 0)
			alike++;
		if (alike > 1)
			find(paths, group + i, alike, detail + 1, ret);
	}
}

void path_details_find(const struct stack_path *paths, size_t *group, size_t nr,
		       struct path_details *ret)
{
	find(paths, group, nr, PATH_DETAIL_NAME, ret);
}

enum path_detail path_details_of(const struct path_details *details, size_t i)
{
	for (size_t k = details->nr; k-- > 0;)
		if (details->frames[k] == i)
			return details->details[k];
	return PATH_DETAIL_NONE;
}
