/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/judging/judge.h"

#include "parser/statistics/idle_time.h"
#include "parser/judging/judge_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A block is suspect if the expected number of blocks as old is at most this share of the actual
 * one ...
 */
#define MAX_ORDINARY 0.05
/* ... and the probability of so many is below 1 in 100,000. */
#define MAX_LOG_CHANCE (-11.5)
/* A share up to this is not significant, but not ordinary either. */
#define UNCLEAR_ORDINARY 0.25
/* A site that frees a smaller share than this keeps its blocks. */
#define NEVER_FREED_SHARE 0.9
#define YOUNG_SHARE	  0.5  /* share of the recording; an older block is not young */
#define TOO_YOUNG_SHARE	  0.05 /* share of the recording */
/* Processes that lived for a smaller share than this were not the target. */
#define GONE_SHARE 0.5
/*
 * The blocks of an overdue site stopped coming: so many arrived, and none in the last part of the
 * time.
 */
#define STOPPED_ARRIVALS 20
#define STOPPED_BEFORE	 0.75
/* One process grows if it does so at more times the rate of the others at the same age. */
#define GROWER_RATIO 3

/* What comes at a steady rate comes in so many windows. */
#define MIN_WINDOWS 3
/*
 * A shorter recording shows no leak. A program that starts loads libraries and locales for as long,
 * which looks like growth.
 */
#define MIN_LENGTH_NS 200000000.0

/* The share of a window in which blocks may be in flight when it closes. */
#define IN_FLIGHT_SHARE 0.05

#define MIN_AGE_NS	1000 /* about as long as a probe takes */

bool judge_is_left_behind(const struct judge *judge, const struct heap_block *block)
{
	const struct process_view *view = view_of(judge, block);
	double lived = (double)(view->end_ns - view->start_ns) / fmax(1, judge->length_ns);
	double since = (double)(judge->input->end_ns - view->end_ns) / fmax(1, judge->length_ns);

	return view->exited && lived < GONE_SHARE &&
	       (since > TOO_YOUNG_SHARE || lived < TOO_YOUNG_SHARE);
}

/*
 * A block that is as young as those that are freed at once, when its window closes, is most likely
 * one of them. Its address is soon used again, and what stays there may be another stack's leak: so
 * looks at it prove nothing. Where this would leave out more than a few of the blocks that stay,
 * it is not done: they are as likely to be young then as to be old.
 */
static double in_flight_ns(const struct judge *judge, const struct site *site)
{
	const struct observed_time *observed = judge->input->observed;
	double p99_ns, window_ns;

	if (!observed || !site->frees || !observed->nr_opened)
		return 0;
	p99_ns = lifetime_sketch_quantile(&site->history->lifetimes, 0.99);
	window_ns = (double)observed_time_before(observed, judge->input->end_ns) /
		    (double)observed->nr_opened;
	return p99_ns <= IN_FLIGHT_SHARE * window_ns / 2 ? IN_FLIGHT_SHARE * window_ns : 0;
}

static bool is_in_flight(const struct judge *judge, const struct heap_block *block)
{
	uint64_t closed_ns = judge->sure.of[block - judge->input->held].closed_ns;
	uint64_t time_ns = block->allocated.time_ns;

	return closed_ns != UINT64_MAX && closed_ns > time_ns &&
	       (double)(closed_ns - time_ns) < judge->in_flight_ns;
}

static uint64_t sure_until_ns(const struct judge *judge, const struct heap_block *block)
{
	const struct sure_age *sure = &judge->sure.of[block - judge->input->held];

	return is_in_flight(judge, block) ? sure->closed_ns : sure->until_ns;
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

double judge_stands_for(const struct judge *judge, const struct heap_block *block)
{
	if (!judge->input->observed)
		return 1;
	/* The ends of all windows show how many there are at a time. */
	if (is_in_flight(judge, block))
		return 1 / (double)judge->input->observed->nr_opened;
	return followed_clock_stands_for(&judge->clock, block->allocated.time_ns);
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

/* The time of an arrival: since the recording's start or, in windows, by the clock. */
static double arrival_s(const struct judge *judge, uint64_t time_ns)
{
	uint64_t zero_ns = judge->input->start_ns;

	if (judge->input->observed)
		return followed_clock_at(&judge->clock, time_ns);
	return (double)(time_ns > zero_ns ? time_ns - zero_ns : 0) / NS_PER_S;
}

/*
 * Returns the time after which the program was idle: what came then is no part of its work. A site
 * whose arrivals go on was not idle.
 */
static double active_until_s(const struct judge *judge, size_t nr, double start_s, double end_s)
{
	double active_s = arrival_s(judge, judge->active_ns);
	size_t nr_later = 0;

	if (active_s >= end_s || active_s <= start_s)
		return end_s;
	for (size_t i = 0; i < nr; i++)
		nr_later += judge->arrivals[i].time_s > active_s;
	return (double)nr_later < IDLE_ACTIVE_SHARE * (double)nr * (end_s - active_s) /
					  (end_s - start_s)
		       ? active_s
		       : end_s;
}

/* The pattern of suspects, the number of them and the time in which they could arrive. */
struct fit {
	enum growth_pattern pattern;
	size_t nr, nr_windows; /* the windows that they came in */
	double start_s, end_s, last_s;
	double until_s; /* @end_s, in windows not by the clock: since the recording's start */
	double life_s;	/* of the processes, until then */
};

/*
 * Collects the blocks of at least that age and their arrivals. fit->start_s to fit->end_s is the
 * time in which they could arrive, and fit->nr the number of arrivals in it.
 */
static void collect_suspects(struct judge *judge, struct site_verdict *verdict, double min_age_ns,
			     struct fit *fit)
{
	uint64_t zero_ns = judge->input->start_ns, start_ns = UINT64_MAX, end_ns = zero_ns;
	double stand_for = 0, last_ns;
	size_t nr = 0, window = 0;

	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct process_view *view = view_of(judge, block);
		uint64_t time_ns = block->allocated.time_ns;

		if (view->start_ns < start_ns)
			start_ns = view->start_ns;
		if (view->end_ns > end_ns)
			end_ns = view->end_ns;
		if ((double)judge_age_ns(judge, block) < min_age_ns)
			continue;
		judge->arrivals[nr++] = (struct arrival){
			.time_s = arrival_s(judge, time_ns),
			.bytes = (double)block->size_bytes,
		};
		if (judge->input->observed) {
			size_t in = observed_time_nr_before(judge->input->observed, time_ns);

			fit->nr_windows += in != window;
			window = in;
		}
		verdict->suspect_bytes += block->size_bytes;
		stand_for += judge_stands_for(judge, block);
	}
	verdict->suspect_blocks = nr;
	if (nr)
		verdict->stands_for = stand_for / (double)nr;
	last_ns = (double)(end_ns - zero_ns) - min_age_ns;
	fit->until_s = last_ns / NS_PER_S;
	fit->start_s = arrival_s(judge, start_ns);
	fit->end_s = judge->input->observed ? arrival_s(judge, zero_ns + (uint64_t)fmax(0, last_ns))
					    : fit->until_s;
	fit->end_s = active_until_s(judge, nr, fit->start_s, fit->end_s);
	if (!judge->input->observed)
		fit->until_s = fit->end_s;
	fit->life_s = fit->until_s - (double)(start_ns - zero_ns) / NS_PER_S;
	for (size_t i = 0; i < nr; i++)
		if (judge->arrivals[i].time_s <= fit->end_s)
			judge->arrivals[fit->nr++] = judge->arrivals[i];
}

static int compare_times(const void *a, const void *b)
{
	double x = ((const struct arrival *)a)->time_s, y = ((const struct arrival *)b)->time_s;

	return (x > y) - (x < y);
}

/* The age of its process when the block was allocated. */
static double process_age_s(const struct judge *judge, const struct heap_block *block)
{
	return fmax(0,
		    (double)(int64_t)(block->allocated.time_ns - view_of(judge, block)->start_ns)) /
	       NS_PER_S;
}

/* The suspects of one process, or of all (ALL_PROCESSES), by age on a clock (NULL: by age). */
#define ALL_PROCESSES SIZE_MAX
static size_t collect_ages(struct judge *judge, size_t process, const struct process_clock *clock,
			   double min_age_ns, double until_s)
{
	size_t nr = 0;

	for (size_t i = 0; i < judge->nr + judge->nr_left; i++) {
		const struct heap_block *block = block_at(judge, i);
		size_t index = judge->views.of[judge->order[i]];
		double age_s = process_age_s(judge, block);

		if (age_s > process_views_life_s(&judge->views, index, min_age_ns, until_s) ||
		    (process != ALL_PROCESSES && process != index))
			continue;
		judge->arrivals[nr++] = (struct arrival){
			.time_s = clock ? process_clock_at(clock, age_s) : age_s,
			.bytes = (double)block->size_bytes,
		};
	}
	qsort(judge->arrivals, nr, sizeof(*judge->arrivals), compare_times);
	return nr;
}

/* The process with the most suspects in the later half of its life. */
static size_t find_grower(struct judge *judge, double min_age_ns, double until_s)
{
	const struct process_views *views = &judge->views;
	size_t grower = views->of[judge->order[0]];

	for (size_t i = 0; i < judge->nr; i++)
		judge->nr_of[views->of[judge->order[i]]] = 0;
	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		size_t index = views->of[judge->order[i]];
		double life_s = process_views_life_s(views, index, min_age_ns, until_s);
		double age_s = process_age_s(judge, block);

		judge->nr_of[index] += age_s >= life_s / 2 && age_s <= life_s;
		if (judge->nr_of[index] > judge->nr_of[grower])
			grower = index;
	}
	return grower;
}

/*
 * True if one process grows, and the others do not grow as much at the same age: they are not
 * merely older than it.
 */
static bool has_grower(struct judge *judge, const struct process_clock *clock, double min_age_ns,
		       double until_s, struct growth_rate *ret)
{
	double life_s, others_s, expected;
	size_t grower, nr, nr_all = 0;

	if (clock->nr < 2)
		return false;
	grower = find_grower(judge, min_age_ns, until_s);
	life_s = process_views_life_s(&judge->views, grower, min_age_ns, until_s);
	if (life_s * NS_PER_S <= TOO_YOUNG_SHARE * judge->length_ns)
		return false;
	nr = judge->nr_of[grower];
	others_s = (process_clock_at(clock, life_s) - process_clock_at(clock, life_s / 2)) *
			   (double)clock->nr -
		   life_s / 2;
	for (size_t i = 0; i < judge->nr + judge->nr_left; i++) {
		const struct heap_block *block = block_at(judge, i);
		double age_s = process_age_s(judge, block);

		nr_all += age_s >= life_s / 2 && age_s <= life_s &&
			  (double)judge_age_ns(judge, block) >= min_age_ns;
	}
	/* One more than was seen: the others may do so rarely. */
	expected = others_s > 0 ? (double)(nr_all - nr + 1) / others_s * life_s / 2 : 0;
	if ((double)nr <= GROWER_RATIO * expected ||
	    survival_log_chance((double)nr, expected) > MAX_LOG_CHANCE)
		return false;
	nr = collect_ages(judge, grower, NULL, min_age_ns, until_s);
	return growth_fit(judge->arrivals, nr, 0, life_s, ret) == GROWTH_STEADY;
}

/*
 * Fits the pattern of suspects. Where their processes began at different times, it counts by their
 * ages, and predecessors count, too: else what each process loads when it starts would look like
 * growth.
 */
static void fit_suspects(struct judge *judge, double min_age_ns, struct fit *fit,
			 struct growth_rate *rate)
{
	struct process_clock clock;
	double from_s = fit->start_s, until_s = fit->until_s, share;

	process_views_clock(&judge->views, judge->order, judge->nr, judge->nr_left, min_age_ns,
			    until_s, &clock);
	if (!clock.began_together) {
		fit->nr = collect_ages(judge, ALL_PROCESSES, &clock, min_age_ns, until_s);
		fit->start_s = 0;
		fit->end_s = process_clock_at(&clock, until_s);
	}
	fit->pattern = growth_fit(judge->arrivals, fit->nr, fit->start_s, fit->end_s, rate);
	fit->last_s = fit->nr ? judge->arrivals[fit->nr - 1].time_s : 0;
	if (clock.began_together && fit->pattern == GROWTH_STEADY) {
		/* Back from the clock of windows. */
		rate->from_s *= until_s / fit->end_s;
		rate->to_s *= until_s / fit->end_s;
		return;
	}
	if (fit->pattern == GROWTH_STEADY) {
		share = (double)clock.nr_present / (double)clock.nr;
		/* Their ages are not by the clock. */
		if (judge->input->observed)
			share *= until_s /
				 fmax(arrival_s(judge, judge->input->start_ns +
							       (uint64_t)(until_s * NS_PER_S)),
				      1e-9);
		rate->blocks_per_s *= share;
		rate->blocks_error *= share;
		rate->bytes_per_s *= share;
		rate->bytes_error *= share;
	} else if (has_grower(judge, &clock, min_age_ns, until_s, rate)) {
		fit->pattern = GROWTH_STEADY;
	}
	/* What was fitted are ages. */
	rate->from_s = from_s;
	rate->to_s = until_s;
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

static void init_survival(struct judge *judge, const struct site *site,
			  struct site_verdict *verdict)
{
	if (!judge->input->observed) {
		survival_init(&judge->survival, site, site_stats_origin(judge->input->sites),
			      judge->input->end_ns);
		return;
	}
	survival_init_windows(&judge->survival, site, judge->ages);
	/* Short lives are seen more often than long ones. */
	verdict->median_s = survival_quantile(&judge->survival, 0.5) / NS_PER_S;
	verdict->p99_s = survival_quantile(&judge->survival, 0.99) / NS_PER_S;
	verdict->stays = judge->survival.stays;
}

void judge_blocks(struct judge *judge, const uint32_t *order, size_t nr_left,
		  struct site_verdict *verdict, struct judged_ages *ret)
{
	const struct site *site = verdict->site;
	bool freed = site->frees > 0;
	struct fit fit = {0};
	double kept;
	float lowest = 1;

	judge->order = order;
	judge->nr = verdict->held_blocks;
	judge->nr_left = nr_left;
	verdict->stands_for = 1;
	verdict->stays = -1;
	verdict->in_windows = judge->input->observed != NULL;
	if (judge->input->observed)
		followed_clock_init(&judge->clock, judge->input->observed, site,
				    site_stats_origin(judge->input->sites), judge->input->end_ns);
	judge->in_flight_ns = in_flight_ns(judge, site);
	*ret = (struct judged_ages){.ordinary = freed ? judge->ordinary : NULL};
	look_at_blocks(judge, verdict);
	judge_certainty_of(judge, verdict);
	if (freed) {
		init_survival(judge, site, verdict);
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
	collect_suspects(judge, verdict, ret->suspect_ns, &fit);
	fit_suspects(judge, ret->suspect_ns, &fit, &verdict->rate);
	/* The short life of a process has no rate, nor have a few moments. */
	if (fit.pattern == GROWTH_STEADY &&
	    (fit.life_s * NS_PER_S <= TOO_YOUNG_SHARE * judge->length_ns ||
	     (judge->input->observed && fit.nr_windows < MIN_WINDOWS)))
		fit.pattern = GROWTH_FEW;
	/* What other processes left behind was not freed. */
	kept = judge->input->observed && freed
		       ? judge->survival.stays
		       : (double)(verdict->suspect_blocks + nr_left) / (double)site->allocations;
	verdict->verdict = freed && kept < NEVER_FREED_SHARE
				   ? judge_overdue(&fit)
				   : judge_kept(judge, verdict, fit.pattern);
	if (judge->length_ns < MIN_LENGTH_NS &&
	    (verdict->verdict == VERDICT_GROWTH || verdict->verdict == VERDICT_OVERDUE ||
	     verdict->verdict == VERDICT_BURST))
		verdict->verdict = VERDICT_UNCLEAR;
	verdict->has_rate = fit.pattern == GROWTH_STEADY && verdict->verdict == VERDICT_GROWTH;
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
		err = sure_ages_find(input->held, input->nr_held, input->followed, input->context,
				     &judge->sure);
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
