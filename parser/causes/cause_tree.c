/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_tree.h"

#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A callee is heavy, and is judged alone, if it has this share of what its caller holds. */
#define HEAVY_SHARE 0.2
/* This many callees of equal weight are one kind, unless their verdicts contradict that. */
#define MANY_CALLEES 5
/* The share that may contradict: among so many blocks, some look like a leak by chance. */
#define CONTRADICTION 0.1

/* The members below one callee of a function: they have one more function in common. */
struct callee {
	size_t begin, end;
	double weight;
	bool is_heavy, is_weak, is_leak;
	bool is_done; /* has a cause */
};

struct callees {
	struct callee *list;
	size_t nr;
};

static int find_callees(const struct cause_finder *finder, size_t begin, size_t end,
			struct callees *ret)
{
	const struct cause_member *members = finder->members;
	const double *before = finder->weight_before;
	size_t depth = cause_nr_shared(&members[begin], &members[end - 1]);

	*ret = (struct callees){.list = calloc(end - begin, sizeof(*ret->list))};
	if (!ret->list)
		return -ENOMEM;
	for (size_t next, i = begin; i < end; i = next) {
		for (next = i + 1;
		     next < end && (cause_nr_shared(&members[i], &members[next]) > depth ||
				    members[i].version == members[next].version);)
			next++;
		ret->list[ret->nr++] = (struct callee){
			.begin = i,
			.end = next,
			.weight = before[next] - before[i],
		};
	}
	return 0;
}

/* Judges the callee's members together. A single member has its verdict already. */
static int judge_callee(struct cause_finder *finder, struct callee *callee)
{
	struct cause_bag bag = cause_bag_empty();
	struct judged_ages ages;
	struct cause_found found = {0};
	int err = 0;

	callee->is_weak = callee->weight <= 0;
	if (callee->is_weak)
		return 0;
	for (size_t i = callee->begin; i < callee->end; i++)
		cause_bag_put(finder, &bag, i);
	if (callee->end - callee->begin == 1)
		found.verdict = *finder->members[callee->begin].site;
	else
		err = cause_judge(finder, &bag, &found, &ages);
	callee->is_weak = !err && cause_is_weak(&found.verdict);
	callee->is_leak = !err && cause_is_leak(found.verdict.verdict);
	site_sum_deinit(&found.sum);
	return err;
}

/* Which light callees to judge together. */
enum choice {
	WEAK,	      /* callees with too few blocks for a verdict */
	STRONG_LEAKS, /* callees that leak by their own verdict */
	WEAK_AND_LEAKS,
	ALL,
};

static bool is_chosen(const struct callee *callee, enum choice choice)
{
	if (callee->is_heavy)
		return false;
	switch (choice) {
	case WEAK:
		return callee->is_weak;
	case STRONG_LEAKS:
		return callee->is_leak && !callee->is_weak;
	case WEAK_AND_LEAKS:
		return callee->is_leak || callee->is_weak;
	case ALL:
		break;
	}
	return true;
}

static struct cause_bag choose(struct cause_finder *finder, const struct callees *callees,
			       enum choice choice)
{
	struct cause_bag bag = cause_bag_empty();

	for (size_t i = 0; i < callees->nr; i++)
		if (is_chosen(&callees->list[i], choice))
			for (size_t k = callees->list[i].begin; k < callees->list[i].end; k++)
				cause_bag_put(finder, &bag, k);
	return bag;
}

/* How many callees of equal weight would be as diverse (the inverse of Simpson's index). */
static double effective_nr(const struct callees *callees, enum choice choice)
{
	double weight = 0, squares = 0;

	for (size_t i = 0; i < callees->nr; i++) {
		if (!is_chosen(&callees->list[i], choice))
			continue;
		weight += callees->list[i].weight;
		squares += callees->list[i].weight * callees->list[i].weight;
	}
	return squares > 0 ? weight * weight / squares : 0;
}

static bool are_many(const struct callees *callees, enum choice choice)
{
	return effective_nr(callees, choice) >= MANY_CALLEES;
}

static bool is_leaking(struct cause_finder *finder, const struct callees *callees,
		       enum choice choice)
{
	struct cause_bag bag = choose(finder, callees, choice);

	return bag.nr > 1 && cause_become(finder, &bag, CAUSE_THAT_LEAKS, true);
}

/* Makes the chosen callees one cause, if their common verdict is the wanted one. */
static bool join(struct cause_finder *finder, struct callees *callees, enum choice choice,
		 enum cause_wanted wanted)
{
	struct cause_bag bag = choose(finder, callees, choice);

	if (bag.nr < 2 || !cause_become(finder, &bag, wanted, false))
		return false;
	for (size_t i = 0; i < callees->nr; i++)
		callees->list[i].is_done |= is_chosen(&callees->list[i], choice);
	return true;
}

static void set_heavy_aside(struct callees *callees)
{
	double weight = 0;

	for (size_t i = 0; i < callees->nr; i++)
		weight += callees->list[i].weight;
	for (size_t i = 0; i < callees->nr; i++)
		callees->list[i].is_heavy = callees->list[i].weight >= HEAVY_SHARE * weight;
}

/* Judges the light callees, those that are not heavy, together if they are many and alike. */
static void join_light(struct cause_finder *finder, struct callees *callees)
{
	double all, leaks;
	struct cause_bag bag;

	if (!are_many(callees, ALL)) {
		/* Without the heavy ones, the rest may be many. */
		set_heavy_aside(callees);
		if (!are_many(callees, ALL))
			return;
	}
	for (size_t i = 0; i < callees->nr && !finder->err; i++)
		if (!callees->list[i].is_heavy)
			finder->err = judge_callee(finder, &callees->list[i]);
	if (finder->err)
		return;
	if (are_many(callees, STRONG_LEAKS) &&
	    join(finder, callees, WEAK_AND_LEAKS, CAUSE_THAT_LEAKS))
		return;
	if (are_many(callees, WEAK_AND_LEAKS) && is_leaking(finder, callees, WEAK) &&
	    join(finder, callees, WEAK_AND_LEAKS, CAUSE_THAT_LEAKS))
		return;
	bag = choose(finder, callees, ALL);
	all = bag.weight;
	bag = choose(finder, callees, STRONG_LEAKS);
	leaks = bag.weight;
	if (leaks <= CONTRADICTION * all)
		join(finder, callees, ALL, CAUSE_WITHOUT_LEAK);
}

/* Puts the members [@begin, @end) in one cause in place of those found since @before, if it leaks.
 */
static void replace_causes(struct cause_finder *finder, size_t begin, size_t end, size_t before)
{
	_cleanup_free_ size_t *next = calloc(end - begin, sizeof(*next));
	struct cause_bag bag = cause_bag_empty();
	size_t nr = finder->nr_found;

	if (!next) {
		finder->err = -ENOMEM;
		return;
	}
	for (size_t i = begin; i < end; i++) {
		next[i - begin] = finder->members[i].next;
		cause_bag_put(finder, &bag, i);
	}
	if (!cause_become(finder, &bag, CAUSE_THAT_LEAKS, false)) {
		/* The members stay in their bags. */
		for (size_t i = begin; i < end; i++)
			finder->members[i].next = next[i - begin];
		return;
	}
	for (size_t i = before; i < nr; i++)
		site_sum_deinit(&finder->found[i].sum);
	finder->found[before] = finder->found[nr];
	finder->nr_found = before + 1;
}

/*
 * Joins the causes found since @before if nearly everything that the members [@begin, @end) hold
 * leaks, most of it spread over many stacks. Then their common caller says as much as the causes.
 */
static void join_leaks(struct cause_finder *finder, size_t begin, size_t end, size_t before)
{
	double all = finder->weight_before[end] - finder->weight_before[begin];
	double leaks = 0, weak = 0, spread = 0, most = 0;
	size_t nr = finder->nr_found;

	for (size_t i = before; i < nr; i++) {
		const struct cause_found *found = &finder->found[i];
		bool is_spread = found->bag.nr >= MANY_CALLEES;

		if (!cause_is_leak(found->verdict.verdict)) {
			weak += cause_is_weak(&found->verdict) ? found->bag.weight : 0;
			continue;
		}
		if (!is_spread && found->bag.weight >= HEAVY_SHARE * all)
			return;
		leaks += found->bag.weight;
		spread += is_spread ? found->bag.weight : 0;
		most = fmax(most, found->bag.weight);
	}
	if (nr - before < 2 || most > leaks / 2 || spread < leaks / 2 ||
	    leaks < (1 - CONTRADICTION) * (all - weak))
		return;
	replace_causes(finder, begin, end, before);
}

/*
 * Finds the causes in the tree of calls whose leaves are the members [@begin, @end). They are
 * sorted by path, so those with equal beginnings follow each other.
 */
static void explore(struct cause_finder *finder, size_t begin, size_t end)
{
	size_t before = finder->nr_found;
	struct callees callees;

	if (finder->err || finder->weight_before[end] <= finder->weight_before[begin])
		return;
	if (end - begin == 1) {
		cause_become_single(finder, begin);
		return;
	}
	if (finder->members[begin].version == finder->members[end - 1].version) {
		cause_become_versions(finder, begin, end);
		return;
	}
	finder->err = find_callees(finder, begin, end, &callees);
	if (!finder->err)
		join_light(finder, &callees);
	for (size_t i = 0; i < callees.nr && !finder->err; i++)
		if (!callees.list[i].is_done)
			explore(finder, callees.list[i].begin, callees.list[i].end);
	if (!finder->err)
		join_leaks(finder, begin, end, before);
	free(callees.list);
}

void cause_tree_explore(struct cause_finder *finder)
{
	explore(finder, 0, finder->nr_members);
}
