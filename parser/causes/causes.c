/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/causes.h"

#include "common/schema/resource_schema.h"
#include "common/scope.h"
#include "parser/causes/cause_callee.h"
#include "parser/causes/cause_reach.h"
#include "parser/causes/cause_together.h"
#include "parser/causes/cause_tree.h"
#include "parser/causes/cause_versions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 1024 /* of a stack, inlined ones too; frames further inside do not count */

/*
 * Folds recursion: where a function is entered again, the path goes on from its first entry.
 * Returns the number of functions.
 */
static uint32_t fold_path(const uint64_t *functions, size_t nr, uint64_t *path, uint32_t *frames)
{
	uint32_t nr_folded = 0;

	for (size_t i = 0; i < nr; i++) {
		uint32_t at = 0;

		while (at < nr_folded && path[at] != functions[i])
			at++;
		if (at == CAUSE_MAX_FUNCTIONS)
			break;
		if (at == nr_folded) {
			path[at] = functions[i];
			frames[at] = (uint32_t)i + 1;
		}
		nr_folded = at + 1;
	}
	return nr_folded;
}

static void *memdup(const void *from, size_t size)
{
	void *to = malloc(size + 1);

	return to ? memcpy(to, from, size) : NULL;
}

/* Tells @versions of the member just added, if it has generated functions. */
static int add_version(struct cause_finder *finder, struct cause_versions *versions,
		       const uint64_t *functions, size_t nr)
{
	const struct verdict_input *input = finder->input;
	uint64_t places[MAX_FRAMES];
	uint32_t stack_id = finder->members[finder->nr_members - 1].counts->stack_id;
	size_t i = 0, nr_places;
	int err;

	while (i < nr && !(functions[i] & GENERATED_FUNCTION))
		i++;
	if (i == nr || !input->places_of)
		return 0;
	err = input->places_of(input->stacks, stack_id, places, MAX_FRAMES, &nr_places);
	return err ? err : cause_versions_add(versions, finder, functions, places, nr);
}

static void add_member(struct cause_finder *finder, struct cause_versions *versions,
		       const struct site *counts, struct site_verdict *site)
{
	uint64_t functions[MAX_FRAMES], path[CAUSE_MAX_FUNCTIONS];
	uint32_t frames[CAUSE_MAX_FUNCTIONS];
	struct cause_member *member = &finder->members[finder->nr_members];
	size_t nr;

	finder->err = finder->input->functions_of(finder->input->stacks, counts->stack_id,
						  functions, MAX_FRAMES, &nr);
	if (finder->err)
		return;
	*member = (struct cause_member){
		.counts = counts,
		.site = site,
		.nr = fold_path(functions, nr, path, frames),
		.version = counts->stack_id,
		.weight = site ? (double)site->held_bytes + (double)site->held_blocks : 0,
	};
	finder->nr_members++;
	member->path = memdup(path, member->nr * sizeof(*path));
	member->frames = memdup(frames, member->nr * sizeof(*frames));
	finder->err = member->path && member->frames ? add_version(finder, versions, functions, nr)
						     : -ENOMEM;
}

/* True if the site's blocks are memory that is not left behind. */
static bool may_join(const struct cause_finder *finder, const struct site_verdict *site)
{
	const struct heap_block *block = &finder->input->held[finder->verdicts->order[site->first]];

	return site->verdict != VERDICT_AT_EXIT && !resource_call_of(block->allocated.schema);
}

static void add_members(struct cause_finder *finder, struct cause_versions *versions)
{
	struct verdicts *verdicts = finder->verdicts;
	size_t nr_all;
	const struct site *all = site_stats_list(finder->input->sites, &nr_all);

	for (size_t i = 0; i < verdicts->nr_sites && !finder->err; i++)
		if (may_join(finder, &verdicts->sites[i]))
			add_member(finder, versions, verdicts->sites[i].site, &verdicts->sites[i]);
	for (size_t i = 0; i < nr_all && !finder->err; i++)
		if (!site_held_blocks(&all[i]) && all[i].frees)
			add_member(finder, versions, &all[i], NULL);
}

static int compare_paths(const void *a, const void *b)
{
	const struct cause_member *x = a, *y = b;
	size_t nr = cause_nr_shared(x, y);

	if (nr < x->nr && nr < y->nr)
		return x->path[nr] < y->path[nr] ? -1 : 1;
	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return (x->counts->stack_id > y->counts->stack_id) -
	       (x->counts->stack_id < y->counts->stack_id);
}

struct numbered {
	uint64_t function;
	size_t met;
};

static int compare_numbered(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->met > y->met) - (x->met < y->met);
}

static int find_numbered(const void *key, const void *element)
{
	uint64_t x = *(const uint64_t *)key, y = ((const struct numbered *)element)->function;

	return (x > y) - (x < y);
}

/*
 * Numbers functions as they are met. What identifies them comes from hashes with a random seed, but
 * the same recording must give the same causes each time, and their order has a say in that.
 */
static void number_functions(struct cause_finder *finder)
{
	_cleanup_free_ struct numbered *numbered = NULL;
	size_t nr_all = 0, nr = 0;

	for (size_t i = 0; i < finder->nr_members; i++)
		nr_all += finder->members[i].nr;
	numbered = calloc(nr_all + 1, sizeof(*numbered));
	if (!numbered) {
		finder->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < finder->nr_members; i++)
		for (size_t k = 0; k < finder->members[i].nr; k++, nr++)
			numbered[nr] = (struct numbered){finder->members[i].path[k], nr};
	qsort(numbered, nr_all, sizeof(*numbered), compare_numbered);
	nr = 0;
	for (size_t i = 0; i < nr_all; i++)
		if (!i || numbered[i].function != numbered[nr - 1].function)
			numbered[nr++] = numbered[i];
	for (size_t i = 0; i < finder->nr_members; i++) {
		for (size_t k = 0; k < finder->members[i].nr; k++) {
			uint64_t *function = &finder->members[i].path[k];
			const struct numbered *found =
				bsearch(function, numbered, nr, sizeof(*numbered), find_numbered);

			*function = found->met;
		}
	}
}

static int reserve(struct cause_finder *finder)
{
	size_t nr_all, nr;

	site_stats_list(finder->input->sites, &nr_all);
	nr = nr_all + finder->verdicts->nr_sites + 1;
	finder->members = calloc(nr, sizeof(*finder->members));
	finder->weight_before = calloc(nr, sizeof(*finder->weight_before));
	/* At most one for each site; those that another has taken over, as many; and a trial. */
	finder->found = calloc(2 * finder->verdicts->nr_sites + CAUSE_MAX_CALLEES + 1,
			       sizeof(*finder->found));
	finder->order = calloc(finder->input->nr_held + 1, sizeof(*finder->order));
	return finder->members && finder->weight_before && finder->found && finder->order ? 0
											  : -ENOMEM;
}

static void release(struct cause_finder *finder)
{
	for (size_t i = 0; i < finder->nr_members; i++) {
		free(finder->members[i].path);
		free(finder->members[i].frames);
	}
	free(finder->members);
	free(finder->weight_before);
	free(finder->found);
	free(finder->order);
}

static void find(struct cause_finder *finder)
{
	struct cause_versions versions = {0};

	add_members(finder, &versions);
	if (!finder->err)
		finder->err = cause_versions_join(&versions, finder);
	cause_versions_deinit(&versions);
	if (!finder->err)
		number_functions(finder);
	if (finder->err || finder->nr_members < 2)
		return;
	qsort(finder->members, finder->nr_members, sizeof(*finder->members), compare_paths);
	for (size_t i = 0; i < finder->nr_members; i++)
		finder->weight_before[i + 1] = finder->weight_before[i] + finder->members[i].weight;
	cause_tree_explore(finder);
	cause_together_join(finder);
	cause_callee_join(finder);
	cause_reach_split(finder);
}

/* The number of functions of the path up to the one that the cause has in common. */
static size_t nr_common(const struct cause_finder *finder, const struct cause_found *found,
			const struct cause_member *member)
{
	size_t nr = 0;

	if (!found->has_callee)
		return cause_nr_shared(&finder->members[found->bag.lowest],
				       &finder->members[found->bag.highest]);
	while (nr < member->nr && member->path[nr] != found->callee)
		nr++;
	return nr + 1;
}

static void add_cause(struct cause_finder *finder, struct cause_found *found)
{
	struct verdicts *verdicts = finder->verdicts;

	for (size_t i = found->bag.first; i != CAUSE_NO_MEMBER; i = finder->members[i].next) {
		struct site_verdict *site = finder->members[i].site;
		size_t nr;

		if (!site)
			continue;
		nr = nr_common(finder, found, &finder->members[i]);
		site->cause = (uint32_t)verdicts->nr_causes;
		if (found->bag.nr > 1 && nr > 0)
			site->nr_shared = finder->members[i].frames[nr - 1];
	}
	verdicts->causes[verdicts->nr_causes++] = (struct cause){
		.verdict = found->verdict,
		.sum = found->sum,
		.nr = found->bag.nr,
	};
}

int causes_find(struct verdicts *verdicts, const struct verdict_input *input, struct judge *judge)
{
	struct cause_finder finder = {.verdicts = verdicts, .input = input, .judge = judge};

	for (size_t i = 0; i < verdicts->nr_sites; i++)
		verdicts->sites[i].cause = UINT32_MAX;
	if (input->functions_of && verdicts->nr_sites > 1) {
		finder.err = reserve(&finder);
		if (!finder.err)
			find(&finder);
	}
	for (size_t i = 0; i < finder.nr_found; i++)
		if (!finder.found[i].is_dropped)
			add_cause(&finder, &finder.found[i]);
	for (size_t i = 0; i < verdicts->nr_sites; i++) {
		if (verdicts->sites[i].cause != UINT32_MAX)
			continue;
		verdicts->sites[i].cause = (uint32_t)verdicts->nr_causes;
		verdicts->causes[verdicts->nr_causes++] = (struct cause){
			.verdict = verdicts->sites[i],
			.nr = 1,
		};
	}
	release(&finder);
	return finder.err;
}
