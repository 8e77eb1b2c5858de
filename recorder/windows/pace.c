/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/pace.h"

#include <math.h>
#include <stdbool.h>

#define KEPT 0.7 /* of what is known, with each window: what it does now may be new */

/*
 * As long as so many of the latest window, or of one so short. Fewer favour that where work comes
 * in bursts. A shorter one tells too little.
 */
#define MOST_TIMES  10
#define SHORTEST_NS 1000000.0

/*
 * What a hit costs may differ that much from what was measured in a process of our own: there, no
 * stack is copied, and no other thread waits.
 */
#define LEAST_COST  0.7
#define LIKELY_COST 1.3
#define NR_LIKELY   7
#define MOST_COST   6.0

/*
 * A CPU time may be wrong by so much of it, and by so much at least: of running threads, the kernel
 * counts it as of their last tick.
 */
#define CPU_ERROR     0.1
#define CPU_ERROR_NS  4000000.0

#define MIN_TRANSFERS 50 /* fewer tell nothing */

/* As if so much had been seen at the pace 1. */
#define PRIOR_CPU_NS	100000.0
#define PRIOR_TRANSFERS 2.0

#define MIN_RATIO	0.01
#define MAX_RATIO	2.0

/* @ns: how much of the time from @from to @to counts, with @part of what happened in it. */
static void add(struct pace_sums *sums, const struct pace_meter *from, const struct pace_meter *to,
		const struct pace_sample *sample, double part, uint64_t ns)
{
	double all_ns = fmax(1, (double)(to->now_ns - from->now_ns));
	double thread_ns = fmax(1, (double)(to->thread_ns - from->thread_ns));
	double cpu_ns = (double)(to->cpu_ns - from->cpu_ns);
	double hits_ns = part * (double)(to->hits_ns - from->hits_ns);

	sums->ns = sums->ns * KEPT + (double)ns;
	sums->cpu_ns = sums->cpu_ns * KEPT + part * cpu_ns;
	sums->hits_ns = sums->hits_ns * KEPT + hits_ns;
	sums->thread_ns = sums->thread_ns * KEPT + thread_ns;
	sums->busy_hits_ns = sums->busy_hits_ns * KEPT + hits_ns * cpu_ns / thread_ns;
	sums->sampled_ns = sums->sampled_ns * KEPT + (double)sample->ns * (double)ns / all_ns;
	sums->transfers = sums->transfers * KEPT + part * (double)sample->transfers;
}

/* Lets windows count as if they had been @ns long in the mean, if they were longer. */
static void shorten(struct pace_sums *sums, double ns)
{
	double part = ns / (1 - KEPT) / sums->ns;

	if (part >= 1)
		return;
	sums->ns *= part;
	sums->cpu_ns *= part;
	sums->hits_ns *= part;
	sums->thread_ns *= part;
	sums->busy_hits_ns *= part;
	sums->sampled_ns *= part;
	sums->transfers *= part;
}

void pace_add_window(struct pace *pace, const struct pace_meter *from, const struct pace_meter *to,
		     const struct pace_sample *sample, double part, uint64_t window_ns)
{
	/* While a program is idle, a window may last for minutes. That soon counts no more. */
	if (pace->within.ns > 0)
		shorten(&pace->within, MOST_TIMES * fmax((double)window_ns, SHORTEST_NS));
	add(&pace->within, from, to, sample, part, window_ns);
}

static bool show_work(const struct pace_sums *sums)
{
	return sums->cpu_ns >= PRIOR_CPU_NS || sums->transfers >= MIN_TRANSFERS;
}

void pace_add_gap(struct pace *pace, const struct pace_meter *from, const struct pace_meter *to,
		  const struct pace_sample *sample)
{
	/* It does not do less in windows because it was idle before it began to work. */
	if (!show_work(&pace->between))
		*pace = (struct pace){0};
	add(&pace->between, from, to, sample, 1, to->now_ns - from->now_ns);
}

/* The share of all work that was done in windows, by the share of the time that they were. */
static double ratio(const struct pace *pace, double within, double between, double prior)
{
	double time_share = pace->within.ns / (pace->within.ns + pace->between.ns);

	return (within + prior) / ((within + between) * time_share + prior);
}

/* By the CPU time without that of hits, if one costs @factor times as much as was measured. */
static double by_cpu(const struct pace *pace, double factor)
{
	return ratio(pace, fmax(0, pace->within.cpu_ns - factor * pace->within.hits_ns),
		     pace->between.cpu_ns, PRIOR_CPU_NS);
}

/* By the transfers in all of the time, as in the samples. */
static double by_transfers(const struct pace *pace)
{
	const struct pace_sums *within = &pace->within, *between = &pace->between;

	return ratio(pace, within->transfers / within->sampled_ns * within->ns,
		     between->transfers / between->sampled_ns * between->ns, PRIOR_TRANSFERS);
}

/*
 * By the CPU time that remains if hits cost as little as they may. Nothing remains if others
 * disturbed the measurement, and they cost even less.
 */
static bool is_bounded_above(const struct pace_sums *within)
{
	double rest_ns = within->cpu_ns - LEAST_COST * within->hits_ns;

	return rest_ns > fmax(CPU_ERROR * within->cpu_ns, CPU_ERROR_NS);
}

/*
 * Where hits take most of the CPU time, what is left is smaller than its error, and often negative.
 * So this is the mean of what it would be at all likely costs.
 */
static double by_likely_costs(const struct pace *pace)
{
	double sum = 0;

	for (int i = 0; i < NR_LIKELY; i++)
		sum += by_cpu(pace, LEAST_COST + i * (LIKELY_COST - LEAST_COST) / (NR_LIKELY - 1));
	return sum / NR_LIKELY;
}

/*
 * At least so fast: a program that computes and waits in turn waits for a smaller part of its time
 * where hits come between. The part counts where the hits are: one that works in bursts waits
 * between them, also in windows. The error is that of one window: at the end of each, more CPU time
 * may be missing than at its begin.
 */
static double by_waiting(const struct pace *pace)
{
	const struct pace_sums *within = &pace->within, *between = &pace->between;
	double time_share = within->ns / (within->ns + between->ns);
	double error = CPU_ERROR / 2 + CPU_ERROR_NS / ((1 - KEPT) * within->ns);
	double waits = 1 - within->busy_hits_ns / within->hits_ns - error;
	double waited = 1 - between->cpu_ns / between->thread_ns + error;

	if (within->hits_ns <= 0 || waits <= 0 || waited <= 0)
		return 0;
	if (waits >= waited)
		return 1;
	return waits / (waits * time_share + waited * (1 - time_share));
}

/*
 * Without transfers, hits that cost more than was measured look like work. So a program is faster
 * in windows only if it is even then.
 */
static double by_cpu_alone(const struct pace *pace)
{
	double least = by_waiting(pace);

	if (is_bounded_above(&pace->within))
		least = fmin(least, by_cpu(pace, LEAST_COST));
	return fmax(least, fmin(by_likely_costs(pace), fmax(1, by_cpu(pace, MOST_COST))));
}

double pace_ratio(const struct pace *pace)
{
	double ret;

	if (pace->within.ns <= 0 || !show_work(&pace->between))
		return 0;
	if (pace->between.transfers < MIN_TRANSFERS || pace->within.sampled_ns <= 0) {
		ret = by_cpu_alone(pace);
	} else {
		ret = fmax(by_transfers(pace), by_cpu(pace, MOST_COST));
		if (is_bounded_above(&pace->within))
			ret = fmin(ret, by_cpu(pace, LEAST_COST));
	}
	return fmin(fmax(ret, MIN_RATIO), MAX_RATIO);
}
