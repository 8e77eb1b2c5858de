/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/windows/followed_clock.h"

#include <math.h>

#define NS_PER_S 1e9

double followed_share(const struct site_windows *windows)
{
	double outlived = 0, followed = 0;

	for (size_t i = 0; windows && i < SITE_PERIODS; i++) {
		outlived += windows->outlived[i];
		followed += windows->followed[i];
	}
	return outlived > 0 ? followed / outlived : 1;
}

static size_t period_of(const struct followed_clock *clock, uint64_t time_ns)
{
	uint64_t since_ns = time_ns > clock->origin_ns ? time_ns - clock->origin_ns : 0;
	uint64_t index = since_ns / clock->period_ns;

	return index < clock->nr ? (size_t)index : clock->nr - 1;
}

/*
 * Decides for how long a period's windows stand. Windows may be rarer than periods: what came in
 * periods without one is taken to be like what came in the nearest ones.
 */
static void share_out_gaps(const double *observed_ns, size_t nr, double *represented_ns)
{
	size_t last = nr; /* the last observed period; nr: none */

	for (size_t i = 0; i < nr; i++) {
		double gap_ns = 0;

		if (observed_ns[i] <= 0)
			continue;
		for (size_t k = last == nr ? 0 : last + 1; k < i; k++)
			gap_ns += represented_ns[k];
		represented_ns[i] += last == nr ? gap_ns : gap_ns / 2;
		if (last < nr)
			represented_ns[last] += gap_ns / 2;
		last = i;
	}
	for (size_t k = last + 1; k < nr; k++)
		represented_ns[last] += represented_ns[k];
}

struct sample {
	double outlived, followed;
	double of_time; /* the time that its windows stand for, by that which they were open */
};

/* The sample of the clock's period @index, which has 2^@fold of the site's. */
static struct sample sample_in(const struct site_windows *windows, size_t index, unsigned int fold)
{
	size_t first = fold < 32 ? index << fold : SITE_PERIODS;
	struct sample sample = {0};

	for (size_t i = first; windows && i < SITE_PERIODS && (i >> fold) == index; i++) {
		sample.outlived += windows->outlived[i];
		sample.followed += windows->followed[i];
	}
	return sample;
}

/*
 * For how many of the program's blocks each one of the sample stands. Together they must stand for
 * all that came. So what came in a period of which none is in the sample, or none yet, is stood for
 * by the blocks of the next period that has some; what came in the last ones by those of the last
 * that has. How much came in a period is counted by its own windows: those of another one may be a
 * hundred times as rare.
 */
static void pool_samples(const struct sample *samples, size_t nr, double *ret_stands_for)
{
	double blocks = 0, followed = 0, former_blocks = 0, former_followed = 0;
	size_t first = 0, former_first = 0;

	for (size_t i = 0; i < nr; i++) {
		blocks += samples[i].outlived * samples[i].of_time;
		followed += samples[i].followed;
		if (followed == 0 && i + 1 < nr)
			continue;
		if (followed == 0) {
			first = former_first;
			blocks += former_blocks;
			followed = former_followed;
		}
		for (size_t k = first; k <= i; k++)
			ret_stands_for[k] =
				followed > 0 ? fmax(1, blocks / followed) : samples[k].of_time;
		former_first = first;
		former_blocks = blocks;
		former_followed = followed;
		first = i + 1;
		blocks = followed = 0;
	}
}

/* How long windows were open before @time_ns that have closed. */
static double closed_before_ns(const struct followed_clock *clock, uint64_t time_ns)
{
	uint64_t until_ns = time_ns < clock->open_ns ? time_ns : clock->open_ns;

	return (double)observed_time_paced_before(clock->time, until_ns);
}

/* The same of the open window. */
static double open_before_ns(const struct followed_clock *clock, uint64_t time_ns)
{
	return time_ns > clock->open_ns ? (double)(time_ns - clock->open_ns) : 0;
}

void followed_clock_init(struct followed_clock *ret, const struct observed_time *time,
			 const struct site *site, uint64_t origin_ns, uint64_t end_ns)
{
	const struct site_history *history = site->history;
	const struct site_windows *windows = history ? history->windows : NULL;
	double share = followed_share(windows), clock_ns = 0, known_ns = 0;
	double observed_ns[SITE_PERIODS], represented_ns[SITE_PERIODS];
	struct sample samples[SITE_PERIODS];
	uint64_t length_ns = end_ns > origin_ns ? end_ns - origin_ns : 1;
	unsigned int shift = history ? history->shift : 0;

	/* The periods of a site that allocated in the beginning only do not reach to the end. */
	while (length_ns >> shift >= SITE_PERIODS)
		shift++;
	*ret = (struct followed_clock){.time = time, .origin_ns = origin_ns, .open_ns = UINT64_MAX};
	if (time->is_open)
		ret->open_ns = time->windows[time->nr - 1].open_ns;
	ret->period_ns = UINT64_C(1) << shift;
	ret->nr = (size_t)fmin(SITE_PERIODS, ceil((double)length_ns / (double)ret->period_ns));
	for (size_t i = 0; i < ret->nr; i++) {
		uint64_t start_ns = origin_ns + i * ret->period_ns;
		/* Events may come up to a moment after the recording's end. */
		uint64_t next_ns = i + 1 < ret->nr ? start_ns + ret->period_ns : end_ns;
		double from = closed_before_ns(ret, start_ns);

		observed_ns[i] = closed_before_ns(ret, next_ns) - from;
		represented_ns[i] = (double)(next_ns - start_ns) -
				    (open_before_ns(ret, next_ns) - open_before_ns(ret, start_ns));
		samples[i] = sample_in(windows, i, history ? shift - history->shift : 0);
		/* One block at the overall share steadies periods with few. */
		ret->share[i] = (samples[i].followed + share) / (samples[i].outlived + 1);
		ret->before_ns[i] = clock_ns;
		ret->observed_before[i] = from;
		clock_ns += observed_ns[i] * ret->share[i];
		known_ns += observed_ns[i];
	}
	ret->carried_stand_for = share > 0 ? fmax(1, 1 / share) : 1;
	/* Where nothing else is known, it stands for all time. */
	ret->open_stand_for =
		known_ns > 0 ? 1 : (double)length_ns / fmax(1, open_before_ns(ret, end_ns));
	share_out_gaps(observed_ns, ret->nr, represented_ns);
	for (size_t i = 0; i < ret->nr; i++)
		samples[i].of_time =
			observed_ns[i] > 0 ? fmax(1, represented_ns[i] / observed_ns[i]) : 1;
	pool_samples(samples, ret->nr, ret->stands_for);
}

double followed_clock_at(const struct followed_clock *clock, uint64_t time_ns)
{
	size_t index = period_of(clock, time_ns);
	double since_ns = closed_before_ns(clock, time_ns) - clock->observed_before[index];

	return (clock->before_ns[index] + fmax(0, since_ns) * clock->share[index] +
		open_before_ns(clock, time_ns)) /
	       NS_PER_S;
}

double followed_clock_stands_for(const struct followed_clock *clock, uint64_t time_ns)
{
	if (time_ns < clock->origin_ns)
		return clock->carried_stand_for;
	if (time_ns >= clock->open_ns)
		return clock->open_stand_for;
	return clock->stands_for[period_of(clock, time_ns)];
}
