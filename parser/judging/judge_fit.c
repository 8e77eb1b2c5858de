/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the suspects came, and at what rate. */
#include "parser/judging/judge.h"

#include "common/partition_point.h"
#include "parser/statistics/idle_time.h"
#include "parser/judging/judge_private.h"

#include <math.h>
#include <stdlib.h>

/* One process grows if it does so at more times the rate of the others at the same age. */
#define GROWER_RATIO 3

/* The time of an arrival: since the recording's start or, in windows, by the clock. */
static double arrival_s(const struct judge *judge, uint64_t time_ns)
{
	uint64_t zero_ns = judge->input->start_ns;

	if (judge->input->observed)
		return followed_clock_at(&judge->clock, time_ns);
	return (double)(time_ns > zero_ns ? time_ns - zero_ns : 0) / NS_PER_S;
}

/* In windows, only a young age is known of some blocks, whenever they came. */
static bool is_suspect(const struct judge *judge, const struct heap_block *block, double min_age_ns)
{
	return (double)judge_age_ns(judge, block) >= min_age_ns;
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

/* The last of the moments at which suspects came. */
struct moment {
	uint64_t time_ns;
	size_t window;
};

/* What comes in one window is of one moment, unless the window is a large part of the recording. */
static void note_moment(const struct judge *judge, const struct site_verdict *verdict,
			const struct heap_block *block, struct moment *last, struct fit *fit)
{
	const struct moment moment = {
		block->allocated.time_ns,
		observed_time_nr_before(judge->input->observed, block->allocated.time_ns),
	};

	fit->has_proven |= judge_outlived_flight(judge, block, verdict->p99_s * NS_PER_S);
	if (fit->nr_moments && moment.window == last->window &&
	    (double)(moment.time_ns - last->time_ns) <= TOO_YOUNG_SHARE * judge->length_ns)
		return;
	fit->nr_moments++;
	*last = moment;
}

/*
 * Of some blocks the looks are too few to show that they are of a suspect's age: leakrec looks at
 * no more than LOOKS_MAX blocks, so newer ones take the place of others. They are suspects as often
 * as the blocks are of which more is known. Returns by how much that raises the number of suspects.
 * Young blocks do not count: most of those that end do so before their first look, so that they
 * were never among the few.
 */
static double few_looks_factor(const struct judge *judge, const struct site *site,
			       double min_age_ns, const struct fit *fit)
{
	const struct site_windows *windows = site->history ? site->history->windows : NULL;
	double few = 0, known = 0, ended = 0;

	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct sure_age *sure = &judge->sure.of[block - judge->input->held];

		ended -= sure->is_followed;
		if (judge_is_young(judge, block) ||
		    arrival_s(judge, block->allocated.time_ns) > fit->end_s)
			continue;
		if (sure->may_stay && !is_suspect(judge, block, min_age_ns))
			few++;
		else
			known++;
	}
	/* What was followed and is not held has ended. */
	for (size_t i = 0; windows && i < SITE_PERIODS; i++)
		ended += windows->followed[i];
	for (unsigned int i = 0; windows && i < judge_nr_young(judge); i++)
		ended -= (double)lifetime_sketch_total(&windows->late[i]);
	return 1 + few / fmax(1, known + fmax(0, ended));
}

/*
 * The share of the site's allocations that is suspect: of those that outlive their windows, and of
 * these those that leakrec has looked at. -1: not known. What was in flight, or left behind, would
 * have to be told from what was not.
 */
static double kept_share(const struct judge *judge, const struct site *site, double min_age_ns,
			 const struct fit *fit)
{
	const struct site_windows *windows = site->history ? site->history->windows : NULL;
	double allocations = (double)site->allocations, outlived = 0, known = 0, kept = 0;

	if (!windows || judge->nr_in_flight || judge->nr_left)
		return -1;
	for (size_t i = 0; i < SITE_PERIODS; i++) {
		outlived += windows->outlived[i];
		known += windows->followed[i];
	}
	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct sure_age *sure = &judge->sure.of[block - judge->input->held];
		bool is_suspect_one = is_suspect(judge, block, min_age_ns);

		/* Its window is open, or was so before the recording. */
		if (!sure->is_followed)
			allocations--;
		else if (arrival_s(judge, block->allocated.time_ns) > fit->end_s ||
			 (sure->may_stay && !is_suspect_one))
			known--; /* it has had too few looks */
		else
			kept += is_suspect_one;
	}
	return known > 0 && allocations > 0
		       ? fmin(1, outlived / allocations) * fmin(1, kept / known)
		       : -1;
}

/*
 * Collects the blocks of at least that age and their arrivals. fit->start_s to fit->end_s is the
 * time in which they could arrive, and fit->nr the number of arrivals in it.
 */
static void collect_suspects(struct judge *judge, struct site_verdict *verdict, double min_age_ns,
			     struct fit *fit)
{
	uint64_t zero_ns = judge->input->start_ns, start_ns = UINT64_MAX, end_ns = zero_ns;
	double stand_for = 0, factor = 0, last_ns;
	struct moment moment = {0};
	size_t nr = 0;

	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct process_view *view = view_of(judge, block);
		uint64_t time_ns = block->allocated.time_ns;

		if (view->start_ns < start_ns)
			start_ns = view->start_ns;
		if (view->end_ns > end_ns)
			end_ns = view->end_ns;
		if (!is_suspect(judge, block, min_age_ns))
			continue;
		judge->arrivals[nr++] = (struct arrival){
			.time_s = arrival_s(judge, time_ns),
			.bytes = (double)block->size_bytes,
		};
		verdict->suspect_bytes += block->size_bytes;
		stand_for += judge_stands_for(judge, block);
		if (judge->input->observed) {
			note_moment(judge, verdict, block, &moment, fit);
			factor += judge_in_flight_factor(judge, block);
		}
	}
	verdict->suspect_blocks = nr;
	if (nr)
		verdict->stands_for = stand_for / (double)nr;
	fit->factor = judge->input->observed && nr ? factor / (double)nr : 1;
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
	fit->few_factor = judge->input->observed
				  ? few_looks_factor(judge, verdict->site, min_age_ns, fit)
				  : 1;
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
		    (process != ALL_PROCESSES && process != index) ||
		    !is_suspect(judge, block, min_age_ns))
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

		judge->nr_of[index] += age_s >= life_s / 2 && age_s <= life_s &&
				       is_suspect(judge, block, min_age_ns);
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
			  is_suspect(judge, block, min_age_ns);
	}
	/* One more than was seen: the others may do so rarely. */
	expected = others_s > 0 ? (double)(nr_all - nr + 1) / others_s * life_s / 2 : 0;
	if ((double)nr <= GROWER_RATIO * expected ||
	    survival_log_chance((double)nr, expected) > MAX_LOG_CHANCE)
		return false;
	nr = collect_ages(judge, grower, NULL, min_age_ns, until_s);
	return growth_fit(judge->arrivals, nr, 0, life_s, ret) == GROWTH_STEADY;
}

static void scale(struct growth_rate *rate, double factor)
{
	rate->blocks_per_s *= factor;
	rate->blocks_error *= factor;
	rate->bytes_per_s *= factor;
	rate->bytes_error *= factor;
}

/* When the clock first shows that. */
static double since_start_s(const struct judge *judge, double clock_s)
{
	uint64_t zero_ns = judge->input->start_ns;
	size_t ns = partition_point((size_t)judge->length_ns, i,
				    arrival_s(judge, zero_ns + i) < clock_s);

	return (double)ns / NS_PER_S;
}

/*
 * Makes the rate by the clock one in real time. Windows are longer where the program does little
 * for its cost, as on busy CPUs. By the clock, such times would count too much. So each block
 * counts by what it stands for.
 */
static void weigh(const struct judge *judge, double min_age_ns, const struct fit *fit,
		  struct growth_rate *rate)
{
	const struct growth_rate by_clock = *rate;
	double blocks = 0, squares = 0, bytes = 0, nr = 0, length_s, spread;
	uint64_t zero_ns = judge->input->start_ns;

	rate->from_s = fit->until_s - fit->life_s;
	rate->to_s = fit->until_s;
	if (by_clock.from_s > fit->start_s)
		rate->from_s = since_start_s(judge, by_clock.from_s);
	if (arrival_s(judge, judge->active_ns) <= fit->end_s)
		rate->to_s = fmin(rate->to_s, (double)(judge->active_ns - zero_ns) / NS_PER_S);
	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		double stands_for = judge_stands_for(judge, block);
		double at_s = arrival_s(judge, block->allocated.time_ns);

		if (at_s < by_clock.from_s || at_s > by_clock.to_s ||
		    !is_suspect(judge, block, min_age_ns))
			continue;
		nr++;
		blocks += stands_for;
		squares += stands_for * stands_for;
		bytes += stands_for * (double)block->size_bytes;
	}
	length_s = fmax(rate->to_s - rate->from_s, 1e-9);
	rate->blocks_per_s = fit->few_factor * blocks / length_s;
	rate->bytes_per_s = fit->few_factor * bytes / length_s;
	/* With different weights, as many blocks tell no more than a few with equal ones (Kish). */
	spread = sqrt(nr * squares) / blocks;
	rate->blocks_error =
		rate->blocks_per_s * spread * by_clock.blocks_error / by_clock.blocks_per_s;
	/* Blocks may have no bytes. */
	if (bytes > 0)
		rate->bytes_error =
			rate->bytes_per_s * spread * by_clock.bytes_error / by_clock.bytes_per_s;
}

/*
 * Fits the pattern of suspects. Where their processes began at different times, it counts by their
 * ages, and predecessors count, too: else what each process loads when it starts would look like
 * growth.
 */
static void fit_suspects(struct judge *judge, double min_age_ns, struct site_verdict *verdict,
			 struct fit *fit)
{
	struct growth_rate *rate = &verdict->rate;
	struct process_clock clock;
	double from_s = fit->start_s, until_s = fit->until_s, share = fit->factor * fit->few_factor;

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
		if (!judge->input->observed)
			return;
		weigh(judge, min_age_ns, fit, rate);
		verdict->kept = kept_share(judge, verdict->site, min_age_ns, fit);
		verdict->dispersion =
			fmax(1, (double)verdict->suspect_blocks *
					pow(rate->blocks_error / rate->blocks_per_s, 2));
		return;
	}
	if (fit->pattern == GROWTH_STEADY)
		share *= (double)clock.nr_present / (double)clock.nr;
	else if (has_grower(judge, &clock, min_age_ns, until_s, rate))
		fit->pattern = GROWTH_STEADY;
	/* What was fitted are ages, which are not by the clock of windows. */
	if (judge->input->observed)
		share *= until_s / fmax(arrival_s(judge, judge->input->start_ns +
								 (uint64_t)(until_s * NS_PER_S)),
					1e-9);
	scale(rate, share);
	rate->from_s = from_s;
	rate->to_s = until_s;
}

void judge_fit(struct judge *judge, double min_age_ns, struct site_verdict *verdict,
	       struct fit *ret)
{
	*ret = (struct fit){0};
	collect_suspects(judge, verdict, min_age_ns, ret);
	verdict->kept = -1;
	fit_suspects(judge, min_age_ns, verdict, ret);
}
