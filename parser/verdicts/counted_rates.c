/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/counted_rates.h"

#include "common/schema/resource_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NS_PER_S 1e9

/* Fewer calls in windows, or blocks, tell little of how many blocks a call allocates. */
#define MIN_OBSERVED 5

/* The relative variance of the share @share that was found in a sample, @nr of which have it. */
static double variance_of(double share, double nr)
{
	return fmax((1 - share) / nr, 1 / (nr * nr));
}

bool counted_rate_improve(struct site_verdict *verdict, const struct call_sum *calls,
			  const struct counted_part *part)
{
	struct growth_rate *rate = &verdict->rate;
	double observed = calls->observed, blocks, blocks_per_s, variance, former, sizes;

	blocks = calls->blocks * part->allocations / part->of_all;
	if (!(observed >= MIN_OBSERVED && blocks >= MIN_OBSERVED && calls->calls >= 1) ||
	    part->allocations > part->of_all || !(verdict->kept > 0) || !(rate->blocks_per_s > 0) ||
	    !verdict->suspect_blocks)
		return false;
	blocks_per_s = calls->calls_per_s * blocks / observed * verdict->kept;
	/* As if a share of the calls allocated one each, and one call more or less. */
	variance = (fabs(observed - blocks) + 1) / (observed * blocks) +
		   variance_of(verdict->kept, (double)verdict->suspect_blocks);
	variance = fmax(1, verdict->dispersion) * variance + 1 / calls->calls;
	former = pow(rate->blocks_error / rate->blocks_per_s, 2);
	if (!(variance < former && isfinite(blocks_per_s)))
		return false;
	/* Their sizes are as uncertain as they were. */
	sizes = rate->bytes_per_s > 0 ? pow(rate->bytes_error / rate->bytes_per_s, 2) - former : 0;
	rate->bytes_per_s *= blocks_per_s / rate->blocks_per_s;
	rate->bytes_error = rate->bytes_per_s * sqrt(variance + fmax(0, sizes));
	rate->blocks_per_s = blocks_per_s;
	rate->blocks_error = blocks_per_s * sqrt(variance);
	return true;
}

struct finder {
	struct verdicts *verdicts;
	const struct verdict_input *input;
	uint32_t call_id;
	double of_all;	  /* allocations in windows through the call; negative: not added up */
	bool *has;	  /* by site of @verdicts: all of its blocks come through the call */
	uint32_t *nr_has; /* by cause: the number of such sites */
};

static bool comes_through(const struct finder *finder, const struct site_verdict *site)
{
	const struct verdict_input *input = finder->input;
	const uint32_t *order = &finder->verdicts->order[site->first];
	pid_t pid = 0;

	if (!input->has_call(input->stacks, site->site->stack_id, finder->call_id) ||
	    resource_call_of(input->held[order[0]].allocated.schema))
		return false;
	for (size_t i = 0; i < site->held_blocks; i++) {
		const struct heap_op *allocated = &input->held[order[i]].allocated;

		if ((i == 0 || allocated->pid != pid) &&
		    !call_counts_has(input->calls, finder->call_id, allocated->pid))
			return false;
		pid = allocated->pid;
	}
	return true;
}

static void add_up(struct finder *finder)
{
	const struct verdict_input *input = finder->input;
	size_t nr;
	const struct site *all = site_stats_list(input->sites, &nr);

	finder->of_all = 0;
	for (size_t i = 0; i < nr; i++)
		if (input->has_call(input->stacks, all[i].stack_id, finder->call_id))
			finder->of_all += (double)all[i].allocations;
}

static uint64_t time_ns(const struct finder *finder, double since_start_s)
{
	return finder->input->start_ns + (uint64_t)(fmax(0, since_start_s) * NS_PER_S);
}

/*
 * @site has the counts of @verdict's kind. Returns how many times as large the rate is now; 0: it
 * is as it was.
 */
static double improve(struct finder *finder, struct site_verdict *verdict, const struct site *site)
{
	const double former = verdict->rate.blocks_per_s;
	struct call_sum calls;
	struct counted_part part;

	if (!verdict->has_rate || !call_counts_sum(finder->input->calls, finder->call_id,
						   time_ns(finder, verdict->rate.from_s),
						   time_ns(finder, verdict->rate.to_s), &calls))
		return 0;
	if (finder->of_all < 0)
		add_up(finder);
	part = (struct counted_part){(double)site->allocations, finder->of_all};
	if (!counted_rate_improve(verdict, &calls, &part))
		return 0;
	verdict->counted_call = finder->call_id;
	return verdict->rate.blocks_per_s / former;
}

/* The blocks stand for as many as the rate says, which knows the program's pace. */
static void scale_blocks(struct verdicts *verdicts, struct site_verdict *site, double factor)
{
	site->stands_for *= factor;
	for (size_t i = 0; i < site->held_blocks; i++)
		verdicts->blocks[verdicts->order[site->first + i]].stands_for *= (float)factor;
}

static void improve_all(struct finder *finder)
{
	struct verdicts *verdicts = finder->verdicts;

	finder->of_all = -1;
	for (size_t i = 0; i < verdicts->nr_causes; i++)
		finder->nr_has[i] = 0;
	for (size_t i = 0; i < verdicts->nr_sites; i++) {
		struct site_verdict *site = &verdicts->sites[i];
		double factor;

		finder->has[i] =
			(site->has_rate || verdicts->causes[site->cause].verdict.has_rate) &&
			comes_through(finder, site);
		finder->nr_has[site->cause] += finder->has[i];
		factor = finder->has[i] ? improve(finder, site, site->site) : 0;
		if (factor > 0)
			scale_blocks(verdicts, site, factor);
	}
	for (size_t i = 0; i < verdicts->nr_causes; i++) {
		struct cause *cause = &verdicts->causes[i];
		double factor;

		if (!finder->nr_has[i] || finder->nr_has[i] != cause->nr)
			continue;
		factor = improve(finder, &cause->verdict,
				 cause->nr > 1 ? &cause->sum : cause->verdict.site);
		if (factor > 0)
			cause->verdict.stands_for *= factor;
		for (size_t k = 0; k < verdicts->nr_sites && factor > 0; k++)
			if (verdicts->sites[k].cause == i &&
			    verdicts->sites[k].counted_call != finder->call_id)
				scale_blocks(verdicts, &verdicts->sites[k], factor);
	}
}

/* Several processes may have the same call. */
static bool is_first(const struct call_counts *calls, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (calls->of[k] && calls->of[k]->last.call_id == calls->of[i]->last.call_id)
			return false;
	return true;
}

int counted_rates_apply(struct verdicts *verdicts, const struct verdict_input *input)
{
	_cleanup_free_ bool *has = calloc(verdicts->nr_sites + 1, sizeof(*has));
	_cleanup_free_ uint32_t *nr_has = calloc(verdicts->nr_causes + 1, sizeof(*nr_has));
	struct finder finder = {.verdicts = verdicts, .input = input, .has = has, .nr_has = nr_has};

	if (!has || !nr_has)
		return -ENOMEM;
	for (size_t i = 0; i < CALL_COUNTS_MAX; i++) {
		if (!input->calls->of[i] || !is_first(input->calls, i))
			continue;
		finder.call_id = input->calls->of[i]->last.call_id;
		improve_all(&finder);
	}
	return 0;
}
