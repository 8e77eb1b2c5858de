/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/windows/call_counts.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_S 1e9

/* What was counted stands for a time of which it is at least this share. */
#define MIN_COVERED 0.5
/* The last sample may be of the last window, but its process must not have ended before. */
#define MAX_UNCOVERED_END 0.125

void call_counts_deinit(struct call_counts *counts)
{
	for (size_t i = 0; i < CALL_COUNTS_MAX; i++)
		free(counts->of[i]);
	*counts = (struct call_counts){0};
}

/* The last point moves on until it is far enough from the one before it. */
static void add_point(struct call_history *history, uint64_t time_ns, uint64_t all)
{
	struct call_point *points = history->points;
	size_t nr = history->nr;

	if (nr > 1 && points[nr - 1].time_ns - points[nr - 2].time_ns < history->spacing_ns)
		nr--;
	if (nr == CALL_POINTS_MAX) {
		nr /= 2;
		for (size_t i = 1; i < nr; i++)
			points[i] = points[2 * i];
		history->spacing_ns = (points[nr - 1].time_ns - points[0].time_ns) / nr;
	}
	points[nr] = (struct call_point){time_ns, all};
	history->nr = nr + 1;
}

static bool continues(const struct call_sample *last, const struct call_sample *sample)
{
	return sample->number == last->number && sample->pid == last->pid &&
	       sample->call_id == last->call_id && sample->since_ns == last->since_ns &&
	       sample->time_ns >= last->time_ns && sample->all >= last->all &&
	       sample->observed >= last->observed && sample->blocks >= last->blocks;
}

int call_counts_add(struct call_counts *counts, const struct call_sample *sample, uint64_t start_ns)
{
	struct call_history **history = &counts->of[sample->number % CALL_COUNTS_MAX];

	if (!sample->number || !sample->call_id || sample->since_ns > sample->time_ns ||
	    sample->observed > sample->all)
		return 0;
	if (!*history)
		*history = calloc(1, sizeof(**history));
	if (!*history)
		return -ENOMEM;
	if (!continues(&(*history)->last, sample)) {
		**history = (struct call_history){0};
		if (sample->since_ns >= start_ns)
			add_point(*history, sample->since_ns, 0);
	}
	add_point(*history, sample->time_ns, sample->all);
	(*history)->last = *sample;
	return 0;
}

bool call_counts_has(const struct call_counts *counts, uint32_t call_id, pid_t pid)
{
	for (size_t i = 0; i < CALL_COUNTS_MAX; i++)
		if (counts->of[i] && counts->of[i]->last.call_id == call_id &&
		    counts->of[i]->last.pid == pid)
			return true;
	return false;
}

/* How many calls there were up to @time_ns, which lies between the first point and the last. */
static double calls_at(const struct call_history *history, uint64_t time_ns)
{
	const struct call_point *points = history->points;
	uint64_t length_ns;
	size_t i = 1;

	while (i + 1 < history->nr && points[i].time_ns < time_ns)
		i++;
	length_ns = points[i].time_ns - points[i - 1].time_ns;
	if (!length_ns)
		return (double)points[i].all;
	return (double)points[i - 1].all + (double)(points[i].all - points[i - 1].all) *
						   (double)(time_ns - points[i - 1].time_ns) /
						   (double)length_ns;
}

static uint64_t clamp(uint64_t time_ns, uint64_t low_ns, uint64_t high_ns)
{
	return time_ns < low_ns ? low_ns : time_ns > high_ns ? high_ns : time_ns;
}

/* Adds what is known of one process. Returns false if that is too little. */
static bool add_up(const struct call_history *history, uint64_t from_ns, uint64_t to_ns,
		   struct call_sum *sum)
{
	double length_ns = (double)(to_ns - from_ns), covered_ns, calls;
	uint64_t first_ns, last_ns;

	if (history->nr < 2)
		return false;
	first_ns = history->points[0].time_ns;
	last_ns = history->points[history->nr - 1].time_ns;
	/* The process began or ended outside of that time. */
	if (first_ns >= to_ns || last_ns <= from_ns)
		return true;
	first_ns = clamp(from_ns, first_ns, last_ns);
	last_ns = clamp(to_ns, first_ns, last_ns);
	covered_ns = (double)(last_ns - first_ns);
	if (covered_ns < MIN_COVERED * length_ns ||
	    (double)(to_ns - last_ns) > MAX_UNCOVERED_END * length_ns)
		return false;
	calls = calls_at(history, last_ns) - calls_at(history, first_ns);
	sum->calls += calls;
	sum->calls_per_s += calls * NS_PER_S / covered_ns;
	sum->observed += (double)history->last.observed;
	sum->blocks += (double)history->last.blocks;
	return true;
}

bool call_counts_sum(const struct call_counts *counts, uint32_t call_id, uint64_t from_ns,
		     uint64_t to_ns, struct call_sum *ret)
{
	*ret = (struct call_sum){0};
	if (to_ns <= from_ns)
		return false;
	for (size_t i = 0; i < CALL_COUNTS_MAX; i++)
		if (counts->of[i] && counts->of[i]->last.call_id == call_id &&
		    !add_up(counts->of[i], from_ns, to_ns, ret))
			return false;
	return ret->calls > 0;
}
