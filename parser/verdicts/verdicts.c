/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/verdicts.h"

#include "common/scope.h"
#include "parser/causes/causes.h"
#include "parser/verdicts/counted_rates.h"

#include <errno.h>
#include <stdlib.h>

/* The number of a block's site: that of input.sites, twice, plus one if it was left behind. */
static size_t group_of(const struct verdict_input *input, const struct judge *judge, size_t i)
{
	size_t nr_all;
	const struct site *all = site_stats_list(input->sites, &nr_all);
	const struct site *site = site_stats_find(input->sites, input->held[i].allocated.stack_id);

	return 2 * (site ? (size_t)(site - all) : nr_all) +
	       judge_is_left_behind(judge, &input->held[i]);
}

/* Groups the blocks by site. */
static int group(struct verdicts *verdicts, const struct verdict_input *input,
		 const struct judge *judge)
{
	size_t nr_all, first = 0;
	const struct site *all = site_stats_list(input->sites, &nr_all);
	/* First the number of blocks, then the site's index + 1 among those with blocks. */
	_cleanup_free_ uint64_t *nr_of = calloc(2 * nr_all + 2, sizeof(*nr_of));

	if (!nr_of)
		return -ENOMEM;
	for (size_t i = 0; i < input->nr_held; i++) {
		verdicts->blocks[i].site = (uint32_t)group_of(input, judge, i);
		nr_of[verdicts->blocks[i].site]++;
	}
	/* It is impossible: the heap model counts each block that it holds. */
	if (nr_of[2 * nr_all] || nr_of[2 * nr_all + 1])
		return -EINVAL;
	for (size_t i = 0; i < 2 * nr_all; i++)
		verdicts->nr_sites += nr_of[i] > 0;
	verdicts->sites = calloc(verdicts->nr_sites + 1, sizeof(*verdicts->sites));
	verdicts->causes = calloc(verdicts->nr_sites + 1, sizeof(*verdicts->causes));
	if (!verdicts->sites || !verdicts->causes)
		return -ENOMEM;
	verdicts->nr_sites = 0;
	for (size_t i = 0; i < 2 * nr_all; i++) {
		if (!nr_of[i])
			continue;
		verdicts->sites[verdicts->nr_sites] = (struct site_verdict){
			.site = &all[i / 2],
			.first = first,
		};
		first += nr_of[i];
		nr_of[i] = ++verdicts->nr_sites;
	}
	for (size_t i = 0; i < input->nr_held; i++) {
		struct block_verdict *block = &verdicts->blocks[i];
		struct site_verdict *site;

		block->site = (uint32_t)(nr_of[block->site] - 1);
		site = &verdicts->sites[block->site];
		verdicts->order[site->first + site->held_blocks++] = (uint32_t)i;
	}
	return 0;
}

static void judge_site(struct verdicts *verdicts, const struct verdict_input *input,
		       struct judge *judge, struct site_verdict *site)
{
	const uint32_t *order = &verdicts->order[site->first];
	struct judged_ages ages;

	judge_blocks(judge, order, verdict_left_behind(site), site, &ages);
	for (size_t i = 0; i < site->held_blocks; i++) {
		const struct heap_block *held = &input->held[order[i]];
		struct block_verdict *block = &verdicts->blocks[order[i]];
		uint64_t age_ns = judge_age_ns(judge, held);

		block->doubts = (uint8_t)judge_doubts(judge, held, site->site);
		block->verdict = (uint8_t)site->verdict;
		if (site->verdict != VERDICT_AT_EXIT && (double)age_ns < ages.suspect_ns)
			block->verdict = VERDICT_NOT_YET;
		block->stands_for = (float)judge_stands_for(judge, held);
		block->ordinary = ages.ordinary ? ages.ordinary[lifetime_bucket(age_ns)] : -1;
	}
}

/*
 * The weight of a byte by its verdict. A cause with a lower weight comes first only if it has as
 * many times more bytes.
 */
static double share_of(enum verdict verdict)
{
	static const double shares[VERDICT_NR] = {
		[VERDICT_GROWTH] = 1,	  [VERDICT_OVERDUE] = 1,    [VERDICT_BURST] = 0.1,
		[VERDICT_UNCLEAR] = 1e-3, [VERDICT_PLATEAU] = 5e-4, [VERDICT_STARTUP] = 1e-6,
		[VERDICT_NOT_YET] = 1e-7, [VERDICT_AT_EXIT] = 1e-8,
	};

	return shares[verdict];
}

/* What is suspect now, plus what it grows by in as much time again as was recorded. */
static double weight_of(const struct site_verdict *site, double length_s)
{
	double blocks = (double)(site->suspect_blocks ? site->suspect_blocks : site->held_blocks);
	double bytes = (double)(site->suspect_blocks ? site->suspect_bytes : site->held_bytes);
	/* In windows only a window that lasts to the end has firm blocks, whatever came in it. */
	double firm = site->in_windows ? 1 : (double)site->firm_blocks / (double)site->held_blocks;

	blocks *= site->stands_for;
	bytes *= site->stands_for;
	if (site->has_rate)
		bytes += site->rate.bytes_per_s * length_s;
	return share_of(site->verdict) * (blocks + bytes) * (0.1 + 0.9 * firm);
}

struct ranked {
	double weight;
	uint32_t index, cause; /* its number before; the cause's rank */
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Sorts the causes, and the sites of each. */
static int rank(struct verdicts *verdicts, double length_s)
{
	size_t nr =
		verdicts->nr_sites > verdicts->nr_causes ? verdicts->nr_sites : verdicts->nr_causes;
	_cleanup_free_ struct ranked *ranked = calloc(nr + 1, sizeof(*ranked));
	_cleanup_free_ uint32_t *rank_of = calloc(nr + 1, sizeof(*rank_of));
	_cleanup_free_ struct cause *causes = verdicts->causes;
	_cleanup_free_ struct site_verdict *sites = verdicts->sites;

	verdicts->causes = calloc(verdicts->nr_causes + 1, sizeof(*causes));
	verdicts->sites = calloc(verdicts->nr_sites + 1, sizeof(*sites));
	if (!ranked || !rank_of || !verdicts->causes || !verdicts->sites)
		return -ENOMEM;
	for (size_t i = 0; i < verdicts->nr_causes; i++)
		ranked[i] =
			(struct ranked){weight_of(&causes[i].verdict, length_s), (uint32_t)i, 0};
	qsort(ranked, verdicts->nr_causes, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < verdicts->nr_causes; i++) {
		verdicts->causes[i] = causes[ranked[i].index];
		if (verdicts->causes[i].nr > 1)
			verdicts->causes[i].verdict.site = &verdicts->causes[i].sum;
		rank_of[ranked[i].index] = (uint32_t)i;
	}
	for (size_t i = 0; i < verdicts->nr_sites; i++)
		ranked[i] = (struct ranked){weight_of(&sites[i], length_s), (uint32_t)i,
					    rank_of[sites[i].cause]};
	qsort(ranked, verdicts->nr_sites, sizeof(*ranked), compare_ranked);
	for (size_t i = verdicts->nr_sites; i-- > 0;) {
		struct site_verdict *site = &verdicts->sites[i];

		*site = sites[ranked[i].index];
		site->cause = ranked[i].cause;
		verdicts->causes[site->cause].first = i;
		for (size_t k = 0; k < site->held_blocks; k++)
			verdicts->blocks[verdicts->order[site->first + k]].site = (uint32_t)i;
	}
	return 0;
}

static void sum_up(struct verdicts *verdicts, const struct verdict_input *input)
{
	for (size_t i = 0; i < input->nr_held; i++) {
		verdicts->blocks_of[verdicts->blocks[i].verdict]++;
		verdicts->bytes_of[verdicts->blocks[i].verdict] += input->held[i].size_bytes;
	}
	for (size_t i = 0; i < verdicts->nr_sites; i++)
		verdicts->firm_blocks += verdicts->sites[i].firm_blocks;
}

int verdicts_init(struct verdicts *verdicts, const struct verdict_input *input)
{
	struct judge *judge;
	int err;

	*verdicts = (struct verdicts){.nr_blocks = input->nr_held};
	if (input->nr_held >= UINT32_MAX)
		return -E2BIG;
	verdicts->blocks = calloc(input->nr_held + 1, sizeof(*verdicts->blocks));
	verdicts->order = calloc(input->nr_held + 1, sizeof(*verdicts->order));
	if (!verdicts->blocks || !verdicts->order)
		return -ENOMEM;
	err = judge_create(input, &judge);
	if (!err)
		err = group(verdicts, input, judge);
	for (size_t i = 0; i < verdicts->nr_sites && !err; i++)
		judge_site(verdicts, input, judge, &verdicts->sites[i]);
	if (!err)
		err = causes_find(verdicts, input, judge);
	if (!err && input->calls && input->observed)
		err = counted_rates_apply(verdicts, input);
	if (!err)
		err = rank(verdicts, (double)(input->end_ns - input->start_ns) / 1e9);
	if (!err) {
		sum_up(verdicts, input);
		verdicts->is_too_short = judge_is_too_short(judge);
	}
	judge_destroy(judge);
	return err;
}

void verdicts_deinit(struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->nr_causes && verdicts->causes; i++)
		site_sum_deinit(&verdicts->causes[i].sum);
	free(verdicts->sites);
	free(verdicts->causes);
	free(verdicts->blocks);
	free(verdicts->order);
	*verdicts = (struct verdicts){0};
}
