/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/judging/growth.h"

#include <math.h>

#define NR_BINS	     16
#define MIN_ARRIVALS 5
/*
 * If more than this many times as many blocks came before the window, and the window has fewer than
 * MIN_STRAGGLERS, these are the last ones of a pattern that has ended, not growth.
 */
#define STRAGGLERS_AFTER 5
#define MIN_STRAGGLERS	 10
#define MIN_CLUMPS	 3
#define MIN_BINS	 4	/* bins with arrivals */
#define MIN_TREND	 (-2.5) /* in standard deviations; below it, arrivals decline */
#define MIN_RATIO	 0.6	/* later half to earlier half; above it, no decline */
#define MAX_UNEQUAL	 2	/* parts differ by so many standard deviations */
#define MIN_STOP	 0.05	/* share of the window */
#define MIN_CHANCE	 0.01	/* chance of such a pause at the end, if arrivals go on */
#define MIN_WINDOW	 0.05	/* share of the time; a younger growth cannot be judged */
#define START_SHARE	 0.1
#define BURST_SHARE	 0.05
#define NEARLY_ALL	 0.95
#define CLUMP_GAP	 0.02 /* share of the mean time between two blocks */

struct window {
	const struct arrival *arrivals;
	size_t nr;
	double start_s, end_s;
};

struct bins {
	double blocks[NR_BINS], bytes[NR_BINS];
	size_t nr_occupied;
};

static struct window cut(const struct window *window, double start_s)
{
	struct window rest = *window;

	while (rest.nr > 0 && rest.arrivals[0].time_s < start_s) {
		rest.arrivals++;
		rest.nr--;
	}
	rest.start_s = start_s;
	return rest;
}

static void fill_bins(const struct window *window, struct bins *bins)
{
	double width_s = (window->end_s - window->start_s) / NR_BINS;

	*bins = (struct bins){0};
	for (size_t i = 0; i < window->nr; i++) {
		double bin = (window->arrivals[i].time_s - window->start_s) / width_s;
		size_t index = bin < 0 ? 0 : bin >= NR_BINS ? NR_BINS - 1 : (size_t)bin;

		bins->nr_occupied += bins->blocks[index] == 0;
		bins->blocks[index]++;
		bins->bytes[index] += window->arrivals[i].bytes;
	}
}

static double variance(const double *values)
{
	double mean = 0, sum = 0;

	for (size_t i = 0; i < NR_BINS; i++)
		mean += values[i] / NR_BINS;
	for (size_t i = 0; i < NR_BINS; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum / (NR_BINS - 1);
}

/*
 * Blocks come in clumps, several for one cause. This is the factor by which the variance of their
 * number exceeds that of independent blocks: the mean square of the clumps' sizes, divided by their
 * mean.
 */
static double dispersion_of(const struct window *window)
{
	double gap_s = CLUMP_GAP * (window->end_s - window->start_s) / (double)window->nr;
	double squares = 0, size = 1;

	for (size_t i = 1; i < window->nr; i++) {
		if (window->arrivals[i].time_s - window->arrivals[i - 1].time_s <= gap_s) {
			size++;
			continue;
		}
		squares += size * size;
		size = 1;
	}
	return (squares + size * size) / (double)window->nr;
}

/*
 * The log likelihood ratio of a steady rate against an exponential decline; < 0: a decline is
 * likelier. From the time before to the window the rate fell by nr / nr_before; from one half of
 * the window to the next, by the root of that.
 */
static double steady_against_decay(const struct window *window, size_t nr_before)
{
	double middle_s = (window->start_s + window->end_s) / 2, ratio, later = 0, earlier = 0;

	if (nr_before <= 2 * window->nr)
		return 0;
	for (size_t i = 0; i < window->nr; i++) {
		later += window->arrivals[i].time_s >= middle_s;
		earlier += window->arrivals[i].time_s < middle_s;
	}
	ratio = sqrt((double)window->nr / (double)nr_before);
	return (later + earlier) * log(0.5) - later * log(ratio / (1 + ratio)) -
	       earlier * log(1 / (1 + ratio));
}

/* The ratio of arrivals in the later half of the window to those in the earlier half. */
static double halves_ratio(const struct window *window)
{
	double middle_s = (window->start_s + window->end_s) / 2, later = 0;

	for (size_t i = 0; i < window->nr; i++)
		later += window->arrivals[i].time_s >= middle_s;
	return later / fmax(1, (double)window->nr - later);
}

/*
 * True if the pause at the end is a surprise, and longer than all pauses before. Real rates waver,
 * and with many blocks each pause would be a surprise.
 */
static bool has_stopped(const struct window *window, double dispersion)
{
	double width_s = window->end_s - window->start_s;
	double since_s = window->end_s - window->arrivals[window->nr - 1].time_s, pause_s = 0;

	for (size_t i = 1; i < window->nr; i++)
		pause_s =
			fmax(pause_s, window->arrivals[i].time_s - window->arrivals[i - 1].time_s);
	return since_s > MIN_STOP * width_s && since_s > pause_s &&
	       pow(fmax(0, 1 - since_s / width_s), (double)window->nr / dispersion) < MIN_CHANCE;
}

/*
 * True if a steady rate explains the window. @nr_before arrived in as much time before it; 0: none
 * or not known.
 */
static bool is_steady(const struct window *window, size_t nr_before, struct growth_rate *ret)
{
	double width_s = window->end_s - window->start_s, mean_s = 0, nr = (double)window->nr;
	double dispersion, trend;
	struct bins bins;

	if (window->nr < MIN_ARRIVALS || width_s <= 0)
		return false;
	if (nr_before > STRAGGLERS_AFTER * window->nr && window->nr < MIN_STRAGGLERS)
		return false;
	fill_bins(window, &bins);
	if (bins.nr_occupied < MIN_BINS)
		return false;
	for (size_t i = 0; i < window->nr; i++)
		mean_s += window->arrivals[i].time_s / nr;
	dispersion = dispersion_of(window);
	if (nr / dispersion < MIN_CLUMPS)
		return false;
	/* Laplace's trend test, in standard deviations (docs/verdicts.md). */
	trend = (mean_s - (window->start_s + window->end_s) / 2) / (width_s / sqrt(12)) *
		sqrt(nr / dispersion);
	if ((trend < MIN_TREND && halves_ratio(window) < MIN_RATIO) ||
	    has_stopped(window, dispersion) || steady_against_decay(window, nr_before) < 0)
		return false;
	*ret = (struct growth_rate){
		.blocks_per_s = nr / width_s,
		/* The spread of the bins, but at least the error by chance. */
		.blocks_error =
			sqrt(fmax(nr * dispersion, variance(bins.blocks) * NR_BINS)) / width_s,
		.from_s = window->start_s,
		.to_s = window->end_s,
	};
	for (size_t i = 0; i < NR_BINS; i++)
		ret->bytes_per_s += bins.bytes[i] / width_s;
	/* At least the error that follows from the number of blocks. */
	ret->bytes_error = fmax(sqrt(variance(bins.bytes) * NR_BINS) / width_s,
				ret->bytes_per_s * ret->blocks_error / ret->blocks_per_s);
	return true;
}

/* The window begins with the first arrival inside it. */
static struct window from_first(const struct window *window)
{
	double width_s = window->end_s - window->start_s, before;

	if (window->nr < MIN_ARRIVALS)
		return *window;
	before = (window->arrivals[0].time_s - window->start_s) / width_s;
	if (pow(1 - before, (double)window->nr) >= MIN_CHANCE)
		return *window;
	return cut(window, window->arrivals[0].time_s);
}

/*
 * True if as many came in the earlier half as in the later one, as far as can be told, from the
 * begin on and without more at a start. Then all of them tell the rate better.
 */
static bool is_even(const struct window *all, size_t nr_earlier)
{
	double start_s = all->start_s + START_SHARE * (all->end_s - all->start_s);
	double nr = (double)all->nr, nr_at_start = nr - (double)cut(all, start_s).nr;

	return from_first(all).start_s <= all->start_s &&
	       fabs(nr - 2 * (double)nr_earlier) <= MAX_UNEQUAL * sqrt(nr * dispersion_of(all)) &&
	       nr_at_start - START_SHARE * nr <= MAX_UNEQUAL * sqrt(START_SHARE * nr);
}

enum growth_pattern growth_fit(const struct arrival *arrivals, size_t nr, double start_s,
			       double end_s, struct growth_rate *ret)
{
	struct window all = {arrivals, nr, start_s, end_s}, recent, began;
	double width_s = end_s - start_s, nearly_last_s;
	struct growth_rate whole;
	size_t skipped = (size_t)((1 - NEARLY_ALL) / 2 * (double)nr);

	*ret = (struct growth_rate){0};
	if (nr == 0 || width_s <= 0)
		return GROWTH_FEW;
	recent = cut(&all, start_s + width_s / 2);
	began = from_first(&recent);
	if (began.end_s - began.start_s >= MIN_WINDOW * width_s &&
	    is_steady(&began, nr - recent.nr, ret)) {
		if (is_even(&all, nr - recent.nr) && is_steady(&all, 0, &whole))
			*ret = whole;
		return GROWTH_STEADY;
	}
	began = from_first(&all);
	if (began.end_s - began.start_s >= MIN_WINDOW * width_s && is_steady(&began, 0, ret))
		return GROWTH_STEADY;

	nearly_last_s = arrivals[(size_t)ceil(NEARLY_ALL * (double)(nr - 1))].time_s;
	if (nearly_last_s <= start_s + START_SHARE * width_s)
		return GROWTH_AT_START;
	if (nr < MIN_ARRIVALS)
		return GROWTH_FEW;
	if (arrivals[nr - 1 - skipped].time_s - arrivals[skipped].time_s <= BURST_SHARE * width_s)
		return GROWTH_BURST;
	return GROWTH_STOPPED;
}
