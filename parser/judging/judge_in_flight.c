/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that are in flight when their window closes: they would have been freed a moment later.
 * Their addresses are soon used again, and what stays there may be another stack's leak, so looks
 * prove nothing of them. Which blocks these are is not known. But what stays is as likely to be
 * allocated at the begin of a window as at its end, and what is in flight is young
 * (docs/verdicts.md).
 */
#include "parser/judging/judge_private.h"
#include "parser/windows/followed_blocks.h"

#include <math.h>

/* Laplace's statistic is below it by chance in one of a hundred cases. */
#define MIN_LAPLACE (-2.3)

static const struct sure_age *sure_age_of(const struct judge *judge, const struct heap_block *block)
{
	return &judge->sure.of[block - judge->input->held];
}

/* The last part of a window: its younger half may have been in flight, its older half was not. */
static double span_ns(const struct sure_age *sure)
{
	return 2 * (double)followed_in_flight_ns(sure->window_ns);
}

/* The block's age when its window closed. A call that returned later has the time of the close. */
static double age_at_close_ns(const struct sure_age *sure, const struct heap_block *block)
{
	return fmax(0, (double)(int64_t)(sure->closed_ns - block->allocated.time_ns));
}

/* The blocks of a window count as one: they may come together. */
void judge_find_in_flight(struct judge *judge)
{
	double sum = 0, in_window = 0;
	uint64_t closed_ns = 0;
	size_t nr = 0, nr_in_window = 0;

	judge->has_in_flight = false;
	for (size_t i = 0; judge->input->observed && i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct sure_age *sure = sure_age_of(judge, block);
		double age_ns = age_at_close_ns(sure, block);

		if (sure->closed_ns == UINT64_MAX || sure->until_ns <= sure->closed_ns ||
		    age_ns >= span_ns(sure))
			continue;
		if (sure->closed_ns != closed_ns) {
			sum += nr ? in_window / (double)nr_in_window : 0;
			in_window = 0;
			nr_in_window = 0;
			nr++;
		}
		closed_ns = sure->closed_ns;
		in_window += age_ns / span_ns(sure);
		nr_in_window++;
	}
	if (!nr)
		return;
	sum += in_window / (double)nr_in_window;
	judge->has_in_flight = (sum / (double)nr - 0.5) * sqrt(12 * (double)nr) < MIN_LAPLACE;
}

bool judge_is_young(const struct judge *judge, const struct heap_block *block)
{
	const struct sure_age *sure = sure_age_of(judge, block);

	return sure->closed_ns != UINT64_MAX && age_at_close_ns(sure, block) < span_ns(sure) / 2;
}

bool judge_is_in_flight(const struct judge *judge, const struct heap_block *block)
{
	return judge->has_in_flight && judge_is_young(judge, block);
}

bool judge_outlived_flight(const struct judge *judge, const struct heap_block *block,
			   double longest_ns)
{
	const struct sure_age *sure = sure_age_of(judge, block);

	return sure->closed_ns == UINT64_MAX ||
	       age_at_close_ns(sure, block) >= fmax(MAX_IN_FLIGHT_NS, longest_ns);
}

double judge_in_flight_factor(const struct judge *judge, const struct heap_block *block)
{
	const struct sure_age *sure = sure_age_of(judge, block);
	double window_ns = (double)sure->window_ns;

	/* Of an open window, or of one without a length, it is 0. */
	if (!judge->has_in_flight || !sure->window_ns)
		return 1;
	return window_ns / (window_ns - span_ns(sure) / 2);
}
