/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_bags.h"

#include <stdlib.h>
#include <string.h>

#define WEAK_BLOCKS 20 /* fewer say little about themselves */
#define MIN_BLOCKS  5  /* of sites that are judged together */

struct cause_bag cause_bag_empty(void)
{
	return (struct cause_bag){
		.first = CAUSE_NO_MEMBER, .last = CAUSE_NO_MEMBER, .lowest = CAUSE_NO_MEMBER};
}

void cause_bag_put(struct cause_finder *finder, struct cause_bag *bag, size_t index)
{
	struct cause_member *member = &finder->members[index];

	member->next = CAUSE_NO_MEMBER;
	if (bag->last == CAUSE_NO_MEMBER)
		bag->first = index;
	else
		finder->members[bag->last].next = index;
	bag->last = index;
	if (!member->site)
		return;
	if (bag->lowest == CAUSE_NO_MEMBER || index < bag->lowest)
		bag->lowest = index;
	if (index > bag->highest)
		bag->highest = index;
	bag->nr++;
	bag->weight += member->weight;
}

void cause_bag_pour(struct cause_finder *finder, struct cause_bag *bag,
		    const struct cause_bag *from)
{
	for (size_t i = from->first, next; i != CAUSE_NO_MEMBER; i = next) {
		next = finder->members[i].next;
		cause_bag_put(finder, bag, i);
	}
}

size_t cause_nr_shared(const struct cause_member *a, const struct cause_member *b)
{
	size_t nr = 0;

	while (nr < a->nr && nr < b->nr && a->path[nr] == b->path[nr])
		nr++;
	return nr;
}

static int compare_indices(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int cause_judge(struct cause_finder *finder, const struct cause_bag *bag, struct cause_found *ret,
		struct judged_ages *ret_ages)
{
	size_t nr = 0, nr_left = 0;

	*ret = (struct cause_found){.bag = *bag};
	for (size_t i = bag->first; i != CAUSE_NO_MEMBER; i = finder->members[i].next) {
		const struct cause_member *member = &finder->members[i];
		const struct site_verdict *site = member->site;
		int err = site_stats_sum(finder->input->sites, &ret->sum, member->counts);

		if (err)
			return err;
		if (!site)
			continue;
		memcpy(&finder->order[nr], &finder->verdicts->order[site->first],
		       site->held_blocks * sizeof(*finder->order));
		nr += site->held_blocks;
	}
	qsort(finder->order, nr, sizeof(*finder->order), compare_indices);
	ret->verdict = (struct site_verdict){.site = &ret->sum, .held_blocks = nr};
	for (size_t i = bag->first; i != CAUSE_NO_MEMBER; i = finder->members[i].next) {
		const struct site_verdict *site = finder->members[i].site;
		size_t of_site = site ? verdict_left_behind(site) : 0;

		if (!of_site)
			continue;
		memcpy(&finder->order[nr + nr_left],
		       &finder->verdicts->order[site->first + site->held_blocks],
		       of_site * sizeof(*finder->order));
		nr_left += of_site;
	}
	judge_blocks(finder->judge, finder->order, nr_left, &ret->verdict, ret_ages);
	return 0;
}

bool cause_is_leak(enum verdict verdict)
{
	return verdict == VERDICT_GROWTH || verdict == VERDICT_OVERDUE;
}

bool cause_is_weak(const struct site_verdict *verdict)
{
	return verdict->verdict == VERDICT_UNCLEAR ||
	       (cause_is_leak(verdict->verdict)
			? verdict->suspect_blocks
			: verdict->held_blocks + verdict->site->frees) < WEAK_BLOCKS;
}

/* The site takes the verdict, each of its blocks by its age. */
static void adopt_one(struct cause_finder *finder, struct site_verdict *site, enum verdict verdict,
		      const struct judged_ages *ages)
{
	double stand_for = 0;

	judge_use_sample_of(finder->judge, site->site);
	site->verdict = verdict;
	site->has_rate = false;
	site->suspect_blocks = site->suspect_bytes = 0;
	for (size_t k = 0; k < site->held_blocks; k++) {
		uint32_t index = finder->verdicts->order[site->first + k];
		const struct heap_block *block = &finder->input->held[index];
		struct block_verdict *judged = &finder->verdicts->blocks[index];
		bool is_suspect = (double)judge_age_ns(finder->judge, block) >= ages->suspect_ns;

		judged->verdict = (uint8_t)(is_suspect ? verdict : VERDICT_NOT_YET);
		judged->stands_for = (float)judge_stands_for(finder->judge, block);
		stand_for += is_suspect ? judged->stands_for : 0;
		site->suspect_blocks += is_suspect;
		site->suspect_bytes += is_suspect ? block->size_bytes : 0;
	}
	if (site->suspect_blocks)
		site->stands_for = stand_for / (double)site->suspect_blocks;
}

/* The sites take the verdict of all blocks together. */
static void adopt(struct cause_finder *finder, const struct cause_found *found,
		  const struct judged_ages *ages)
{
	for (size_t i = found->bag.first; i != CAUSE_NO_MEMBER; i = finder->members[i].next) {
		struct site_verdict *site = finder->members[i].site;

		if (!site ||
		    (cause_is_leak(site->verdict) && cause_is_leak(found->verdict.verdict)))
			continue;
		adopt_one(finder, site, found->verdict.verdict, ages);
	}
}

bool cause_become(struct cause_finder *finder, const struct cause_bag *bag,
		  enum cause_wanted wanted, bool is_trial)
{
	struct cause_found *found = &finder->found[finder->nr_found];
	struct judged_ages ages;
	bool is_wanted;

	if (finder->err)
		return false;
	finder->err = cause_judge(finder, bag, found, &ages);
	is_wanted = !finder->err && found->verdict.held_blocks >= MIN_BLOCKS &&
		    (wanted == CAUSE_THAT_LEAKS ? cause_is_leak(found->verdict.verdict)
						: !cause_is_leak(found->verdict.verdict) &&
							  !cause_is_weak(&found->verdict));
	if (!is_wanted || is_trial) {
		site_sum_deinit(&found->sum);
		return is_wanted;
	}
	adopt(finder, found, &ages);
	finder->nr_found++;
	return true;
}

void cause_become_part(struct cause_finder *finder, const struct cause_bag *bag,
		       struct cause_found *found)
{
	struct judged_ages ages;
	struct site_verdict *site;

	finder->err = cause_judge(finder, bag, found, &ages);
	if (finder->err)
		return;
	if (bag->nr > 1) {
		adopt(finder, found, &ages);
		return;
	}
	site = finder->members[bag->lowest].site;
	adopt_one(finder, site, found->verdict.verdict, &ages);
	site->has_rate = found->verdict.has_rate;
	site->rate = found->verdict.rate;
	site->kept = found->verdict.kept;
	site->dispersion = found->verdict.dispersion;
	found->verdict = *site;
	site_sum_deinit(&found->sum);
	found->sum = (struct site){0};
}

void cause_become_versions(struct cause_finder *finder, size_t begin, size_t end)
{
	struct cause_bag bag = cause_bag_empty();

	for (size_t i = begin; i < end; i++)
		cause_bag_put(finder, &bag, i);
	/* On failure, too: its sum is released with the others. */
	cause_become_part(finder, &bag, &finder->found[finder->nr_found++]);
}

void cause_become_single(struct cause_finder *finder, size_t index)
{
	struct cause_found *found = &finder->found[finder->nr_found];

	if (!finder->members[index].site)
		return;
	*found = (struct cause_found){.bag = cause_bag_empty(),
				      .verdict = *finder->members[index].site};
	cause_bag_put(finder, &found->bag, index);
	finder->nr_found++;
}
