/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/judging/judge.h"

#include "parser/statistics/idle_time.h"
#include "parser/judging/judge_private.h"
#include "parser/windows/followed_blocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A block is suspect if the expected number of blocks as old is at most this share of the actual
 * one, and so many do not come by chance (MAX_LOG_CHANCE).
 */
#define MAX_ORDINARY 0.05
/* A share up to this is not significant, but not ordinary either. */
#define UNCLEAR_ORDINARY 0.25
/* A site that frees a smaller share than this keeps its blocks. */
#define NEVER_FREED_SHARE 0.9
#define YOUNG_SHARE	  0.5 /* share of the recording; an older block is not young */
/* Processes that lived for a smaller share than this were not the target. */
#define GONE_SHARE 0.5
/*
 * The blocks of an overdue site stopped coming: so many arrived, and none in the last part of the
 * time.
 */
#define STOPPED_ARRIVALS 20
#define STOPPED_BEFORE	 0.75

/*
 * What comes at a steady rate comes at so many moments. Fewer do not tell whether what stays was in
 * flight.
 */
#define MIN_MOMENTS 3
/* Where blocks are in flight when windows close, a few of them seem old enough to stay. */
#define MIN_SUSPECTS 5
/*
 * A program that starts loads libraries and locales for so long, which looks like growth. On busy
 * CPUs it takes longer, most of which it waits for its turn.
 */
#define START_NS      200000000.0
#define BUSY_START_NS (10 * START_NS)

#define MIN_AGE_NS    1000 /* about as long as a probe takes */

bool judge_is_left_behind(const struct judge *judge, const struct heap_block *block)
{
	const struct process_view *view = view_of(judge, block);
	double lived = (double)(view->end_ns - view->start_ns) / fmax(1, judge->length_ns);
	double since = (double)(judge->input->end_ns - view->end_ns) / fmax(1, judge->length_ns);

	return view->exited && lived < GONE_SHARE &&
	       (since > TOO_YOUNG_SHARE || lived < TOO_YOUNG_SHARE);
}

static uint64_t sure_until_ns(const struct judge *judge, const struct heap_block *block)
{
	const struct sure_age *sure = &judge->sure.of[block - judge->input->held];

	return judge_is_in_flight(judge, block) ? sure->closed_ns : sure->until_ns;
}

uint64_t judge_age_ns(const struct judge *judge, const struct heap_block *block)
{
	uint64_t end_ns = view_of(judge, block)->end_ns, time_ns = block->allocated.time_ns;

	/* Of blocks from before, only those are known that were still held (carried_blocks.h). */
	if (time_ns < judge->input->start_ns)
		time_ns = judge->input->start_ns;
	if (judge->input->observed && sure_until_ns(judge, block) < end_ns)
		end_ns = sure_until_ns(judge, block);
	return end_ns > time_ns ? end_ns - time_ns : 0;
}

/* The part of the block's age that judge_age_ns() leaves out. */
static uint64_t age_before_ns(const struct judge *judge, const struct heap_block *block)
{
	uint64_t start_ns = judge->input->start_ns, time_ns = block->allocated.time_ns;

	return time_ns < start_ns ? start_ns - time_ns : 0;
}

void judge_use_sample_of(struct judge *judge, const struct site *site)
{
	if (judge->input->observed)
		followed_clock_init(&judge->clock, judge->input->observed, site,
				    site_stats_origin(judge->input->sites), judge->input->end_ns);
}

double judge_stands_for(const struct judge *judge, const struct heap_block *block)
{
	if (!judge->input->observed)
		return 1;
	/* The ends of all windows show how many there are at a time. */
	if (judge_is_in_flight(judge, block))
		return judge->clock.carried_stand_for / (double)judge->input->observed->nr_opened;
	return followed_clock_stands_for(&judge->clock, block->allocated.time_ns) *
	       judge_in_flight_factor(judge, block);
}

/*
 * The lowest age from which on the site's blocks are suspect, or a negative number. Fills
 * judge->ordinary for each age. *@ret_lowest is its minimum.
 */
static double suspect_age_ns(struct judge *judge, float *ret_lowest)
{
	double nr = (double)judge->nr, age_ns_found = -1;
	unsigned int first = lifetime_bucket(MIN_AGE_NS);
	float lowest = 1;

	/* Younger ages need no arithmetic. */
	for (unsigned int i = 0; i < first; i++) {
		nr -= judge->ages[i];
		judge->ages[i] = 0;
	}
	for (unsigned int i = 0; i < LIFETIME_BUCKETS; i++) {
		double start_ns = (double)lifetime_bucket_start(i), expected;

		/*
		 * Ages without blocks count, too: from a suspect age on, all older blocks are
		 * suspect.
		 */
		if (nr > 0 && i >= first) {
			expected = survival_expected(&judge->survival, start_ns);
			if (judge->ages[i])
				lowest = fminf(lowest, (float)(expected / nr));
			if (age_ns_found < 0 && expected <= MAX_ORDINARY * nr &&
			    survival_log_chance(nr, expected) <= MAX_LOG_CHANCE)
				age_ns_found = start_ns;
			nr -= judge->ages[i];
		}
		judge->ordinary[i] = lowest;
	}
	*ret_lowest = lowest;
	return age_ns_found;
}

static void look_at_blocks(struct judge *judge, struct site_verdict *verdict)
{
	uint64_t oldest_ns = 0;

	memset(judge->ages, 0, sizeof(judge->ages));
	verdict->exited = true;
	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		uint64_t age_ns = judge_age_ns(judge, block);

		verdict->exited &= view_of(judge, block)->exited;
		if (age_ns + age_before_ns(judge, block) > oldest_ns)
			oldest_ns = age_ns + age_before_ns(judge, block);
		verdict->held_bytes += block->size_bytes;
		judge->ages[lifetime_bucket(age_ns)]++;
	}
	verdict->oldest_s = (double)oldest_ns / NS_PER_S;
	verdict->median_s = verdict->p99_s = -1;
	if (verdict->site->frees) {
		const struct lifetime_sketch *lifetimes = &verdict->site->history->lifetimes;

		verdict->median_s = lifetime_sketch_quantile(lifetimes, 0.5) / NS_PER_S;
		verdict->p99_s = lifetime_sketch_quantile(lifetimes, 0.99) / NS_PER_S;
	}
}

/* The verdict of a site that frees, with overdue blocks. */
static enum verdict judge_overdue(const struct fit *fit)
{
	switch (fit->pattern) {
	case GROWTH_STEADY:
		return VERDICT_GROWTH;
	case GROWTH_AT_START:
		return VERDICT_STARTUP;
	case GROWTH_STOPPED:
		if (fit->nr >= STOPPED_ARRIVALS &&
		    fit->last_s < fit->start_s + STOPPED_BEFORE * (fit->end_s - fit->start_s))
			return VERDICT_PLATEAU;
		return VERDICT_OVERDUE;
	default:
		return VERDICT_OVERDUE;
	}
}

/* The verdict of a site whose blocks stay, so that it has no lifetimes. */
static enum verdict judge_kept(const struct judge *judge, const struct site_verdict *verdict,
			       enum growth_pattern pattern)
{
	double oldest_ns = verdict->oldest_s * NS_PER_S;
	bool young = oldest_ns <= TOO_YOUNG_SHARE * judge->length_ns ||
		     oldest_ns <= fmin(judge->common_p99_ns, YOUNG_SHARE * judge->length_ns);

	switch (pattern) {
	case GROWTH_STEADY:
		return VERDICT_GROWTH;
	case GROWTH_STOPPED:
		return VERDICT_PLATEAU;
	case GROWTH_AT_START:
		return VERDICT_STARTUP;
	case GROWTH_BURST:
		return young ? VERDICT_NOT_YET : VERDICT_BURST;
	case GROWTH_FEW:
		return young ? VERDICT_NOT_YET : VERDICT_UNCLEAR;
	}
	return VERDICT_UNCLEAR;
}

/* Returns whether it is known how long the blocks of @site live that are freed. */
static bool init_survival(struct judge *judge, const struct site *site,
			  struct site_verdict *verdict)
{
	if (!site->frees)
		return false;
	if (!judge->input->observed) {
		survival_init(&judge->survival, site, site_stats_origin(judge->input->sites),
			      judge->input->end_ns);
		return true;
	}
	survival_init_windows(&judge->survival, site, judge->ages, judge->nr_in_flight);
	/* All ends that were seen may be of blocks that were in flight. */
	if (judge->survival.tail_ns <= 0) {
		verdict->median_s = verdict->p99_s = -1;
		return false;
	}
	verdict->stays = judge->survival.stays;
	/* Short lives are seen more often than long ones. */
	verdict->median_s = survival_quantile(&judge->survival, 0.5) / NS_PER_S;
	verdict->p99_s = survival_quantile(&judge->survival, 0.99) / NS_PER_S;
	return true;
}

void judge_blocks(struct judge *judge, const uint32_t *order, size_t nr_left,
		  struct site_verdict *verdict, struct judged_ages *ret)
{
	const struct site *site = verdict->site;
	bool freed, few, few_moments;
	struct fit fit;
	double kept;
	float lowest = 1;

	judge->order = order;
	judge->nr = verdict->held_blocks;
	judge->nr_left = nr_left;
	verdict->stands_for = 1;
	verdict->stays = -1;
	verdict->in_windows = judge->input->observed != NULL;
	judge_use_sample_of(judge, site);
	judge_find_in_flight(judge, site);
	*ret = (struct judged_ages){0};
	look_at_blocks(judge, verdict);
	judge_certainty_of(judge, verdict);
	freed = init_survival(judge, site, verdict);
	if (freed) {
		ret->ordinary = judge->ordinary;
		ret->suspect_ns = suspect_age_ns(judge, &lowest);
	}
	/* Younger ones have not had enough looks. */
	if (judge->input->observed && ret->suspect_ns >= 0)
		ret->suspect_ns = fmax(ret->suspect_ns, judge->sure.youngest_ns);
	if (judge_is_left_behind(judge, block_at(judge, 0))) {
		verdict->verdict = VERDICT_AT_EXIT;
		return;
	}
	if (ret->suspect_ns < 0) {
		verdict->verdict = lowest <= UNCLEAR_ORDINARY ? VERDICT_UNCLEAR : VERDICT_NOT_YET;
		return;
	}
	judge_fit(judge, ret->suspect_ns, verdict, &fit);
	few_moments = judge->input->observed && fit.nr_moments < MIN_MOMENTS;
	/* The short life of a process has no rate, nor have a few moments. */
	if (fit.pattern == GROWTH_STEADY &&
	    (fit.life_s * NS_PER_S <= TOO_YOUNG_SHARE * judge->length_ns || few_moments))
		fit.pattern = GROWTH_FEW;
	/* What other processes left behind was not freed. */
	kept = judge->input->observed && freed
		       ? judge->survival.stays
		       : (double)(verdict->suspect_blocks + nr_left) / (double)site->allocations;
	freed = freed && kept < NEVER_FREED_SHARE;
	verdict->verdict = freed ? judge_overdue(&fit) : judge_kept(judge, verdict, fit.pattern);
	few = verdict->suspect_blocks < (judge->nr_in_flight ? MIN_SUSPECTS : 1) ||
	      (freed && few_moments && !fit.has_proven) ||
	      (freed && verdict->oldest_s * NS_PER_S < (double)site_late_ns(MAX_IN_FLIGHT));
	if ((judge->is_too_short || few) &&
	    (verdict->verdict == VERDICT_GROWTH || verdict->verdict == VERDICT_OVERDUE ||
	     verdict->verdict == VERDICT_BURST))
		verdict->verdict = VERDICT_UNCLEAR;
	verdict->has_rate = fit.pattern == GROWTH_STEADY && verdict->verdict == VERDICT_GROWTH;
}

bool judge_is_too_short(const struct judge *judge)
{
	return judge->is_too_short;
}

static int look_at_all(struct judge *judge)
{
	const struct verdict_input *input = judge->input;
	struct site all = {0};
	size_t nr;
	const struct site *sites = site_stats_list(input->sites, &nr);
	int err = 0;

	judge->active_ns = input->end_ns;
	for (size_t i = 0; i < nr && !err; i++)
		err = site_stats_sum(input->sites, &all, &sites[i]);
	if (!err && all.history) {
		judge->common_p99_ns = lifetime_sketch_quantile(&all.history->lifetimes, 0.99);
		judge->active_ns = idle_since_ns(input->sites, &all, input->end_ns);
	}
	judge->is_too_short = judge->length_ns < START_NS ||
			      (judge->length_ns < BUSY_START_NS &&
			       (double)site_stats_busy_ns(input->sites) < START_NS);
	site_sum_deinit(&all);
	return err;
}

static int find_views(struct judge *judge)
{
	const struct process_views_input input = {
		.held = judge->input->held,
		.nr_held = judge->input->nr_held,
		.start_ns = judge->input->start_ns,
		.end_ns = judge->input->end_ns,
		.process_life = judge->input->process_life,
		.context = judge->input->context,
	};
	int err = process_views_init(&judge->views, &input);

	if (!err)
		judge->nr_of = calloc(judge->views.nr + 1, sizeof(*judge->nr_of));
	return err ? err : judge->nr_of ? 0 : -ENOMEM;
}

int judge_create(const struct verdict_input *input, struct judge **ret)
{
	struct judge *judge = calloc(1, sizeof(*judge));
	int err;

	*ret = judge;
	if (!judge)
		return -ENOMEM;
	judge->input = input;
	judge->arrivals = calloc(input->nr_held + 1, sizeof(*judge->arrivals));
	if (!judge->arrivals)
		return -ENOMEM;
	if (input->end_ns > input->start_ns)
		judge->length_ns = (double)(input->end_ns - input->start_ns);
	judge_sum_losses(judge);
	err = find_views(judge);
	if (!err && input->observed)
		err = sure_ages_find(input->held, input->nr_held, input->end_ns, input->followed,
				     input->context, &judge->sure);
	return err ? err : look_at_all(judge);
}

void judge_destroy(struct judge *judge)
{
	if (!judge)
		return;
	free(judge->arrivals);
	process_views_deinit(&judge->views);
	free(judge->nr_of);
	sure_ages_deinit(&judge->sure);
	free(judge);
}
