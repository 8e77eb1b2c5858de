/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_reach.h"

#include "common/schema/reach_class.h"

static bool has_block(const struct cause_finder *finder, const struct site_verdict *site,
		      enum reach_group group, enum reach_group weaker)
{
	for (size_t i = 0; i < site->held_blocks; i++) {
		uint32_t index = finder->verdicts->order[site->first + i];
		enum reach_group found =
			reach_group_of((enum reach_class)finder->input->reach[index]);

		if (found == group || found == weaker)
			return true;
	}
	return false;
}

static bool has_lost(const struct cause_finder *finder, const struct site_verdict *site)
{
	return has_block(finder, site, REACH_GROUP_LOST, REACH_GROUP_NO_HOLDER);
}

static bool is_mixed(const struct cause_finder *finder, const struct cause_found *found)
{
	bool any_lost = false, any_reachable = false;

	for (size_t i = found->bag.first; i != CAUSE_NO_MEMBER; i = finder->members[i].next) {
		const struct site_verdict *site = finder->members[i].site;

		if (site && has_lost(finder, site))
			any_lost = true;
		else if (site)
			any_reachable |=
				has_block(finder, site, REACH_GROUP_REACHABLE, REACH_GROUP_POINTED);
	}
	return any_lost && any_reachable;
}

static void split(struct cause_finder *finder, struct cause_found *found)
{
	struct cause_bag lost = cause_bag_empty(), others = cause_bag_empty(),
			 empty = cause_bag_empty();
	struct cause_found whole = *found, *other = &finder->found[finder->nr_found];

	for (size_t i = found->bag.first, next; i != CAUSE_NO_MEMBER; i = next) {
		const struct site_verdict *site = finder->members[i].site;

		next = finder->members[i].next;
		cause_bag_put(finder, !site ? &empty : has_lost(finder, site) ? &lost : &others, i);
	}
	/*
	 * What the callers' other sites have freed says something about both, unless a single site
	 * speaks for itself. The lists can share their ends, where these sites are.
	 */
	if (lost.nr > 1)
		cause_bag_pour(finder, &lost, &empty);
	if (others.nr > 1)
		cause_bag_pour(finder, &others, &empty);
	site_sum_deinit(&found->sum);
	found->sum = (struct site){0};
	cause_become_part(finder, &lost, found);
	if (!finder->err) {
		finder->nr_found++;
		cause_become_part(finder, &others, other);
	}
	found->has_callee = other->has_callee = whole.has_callee;
	found->callee = other->callee = whole.callee;
}

void cause_reach_split(struct cause_finder *finder)
{
	size_t nr = finder->nr_found;

	for (size_t i = 0; i < nr && finder->input->reach && !finder->err; i++)
		if (!finder->found[i].is_dropped && is_mixed(finder, &finder->found[i]))
			split(finder, &finder->found[i]);
}
