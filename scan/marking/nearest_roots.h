/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which root leads to each held block in the fewest steps. Marking names whoever came first of
 * several threads; this is the same for the same snapshot. The caller puts words of roots together
 * into groups, such as the words of one variable.
 */
#ifndef LEAKTOOLS_SCAN_NEAREST_ROOTS_H
#define LEAKTOOLS_SCAN_NEAREST_ROOTS_H

#include "scan/marking/marking.h"

#define NEAREST_NONE	   0u
#define NEAREST_MAX_GROUPS UINT16_MAX

struct root_groups {
	void *context;
	/*
	 * Roots of a lower rank hold whatever they lead to, however far; the number of ranks is
	 * @nr_ranks. Roots of higher ones do not count.
	 */
	unsigned (*rank_of)(void *context, const struct root_range *range);
	unsigned nr_ranks;
	/* The group, from 1 on, of the word at @offset of @range; NEAREST_NONE: it does not count.
	 */
	uint16_t (*group_of)(void *context, const struct root_range *range, uint64_t offset);
};

/*
 * *@ret is the group of each block's root, which the caller frees; NEAREST_NONE if there is none.
 * Of roots with the same rank and distance, the first in the order of struct roots is the one.
 * Returns 0 or -ENOMEM.
 */
int nearest_roots_find(const struct marking *marking, const struct root_groups *groups,
		       uint16_t **ret);

#endif
