/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that are in flight when their window closes: they would have been freed a moment later.
 * Their addresses are soon used again, and what stays there may be another stack's leak, so looks
 * prove nothing of them. Which blocks these are is not known. But what stays is as likely to be
 * allocated at the begin of a window as at its end, and what is in flight is young. The lives that
 * ended in their windows show how young (docs/verdicts.md).
 */
#include "parser/judging/judge.h"

#include "parser/judging/judge_private.h"

#include <math.h>

#define MIN_YOUNG 3 /* 1 ms */

/*
 * Chance alone brings Laplace's statistic below the first value in one of twenty cases, and below
 * the second one in one of a hundred. The second one counts where no life ended in a window.
 */
#define MAX_LAPLACE	   (-1.6)
#define MAX_LAPLACE_UNSURE (-2.3)
/*
 * Blocks are too old to be in flight if at most this share of them is expected to be so old, and if
 * chance alone brings so many in one of twenty cases at most.
 */
#define MAX_IN_FLIGHT_SHARE  0.2
#define MAX_IN_FLIGHT_CHANCE (-3)
/* Estimates may be wrong by this factor, mostly because of the program's pace in windows. */
#define MAX_MEMORY_FACTOR 2
/* A large block needs one page of memory at least: the allocator writes its size in front of it. */
#define PAGE_BYTES 4096

static const struct sure_age *sure_age_of(const struct judge *judge, const struct heap_block *block)
{
	return &judge->sure.of[block - judge->input->held];
}

/* Looks show that the block stays, or that another one stays there. */
static bool seems_to_stay(const struct sure_age *sure)
{
	return sure->closed_ns != UINT64_MAX && sure->until_ns > sure->closed_ns;
}

/* The block's age when its window closed. A call that returned later has the time of the close. */
static uint64_t age_at_close_ns(const struct sure_age *sure, const struct heap_block *block)
{
	uint64_t time_ns = block->allocated.time_ns;

	return sure->closed_ns > time_ns ? sure->closed_ns - time_ns : 0;
}

/* The last part of a window, in which blocks may be in flight. */
static double span_ns(const struct sure_age *sure)
{
	return fmin((double)sure->window_ns, 2 * (double)site_late_ns(MAX_IN_FLIGHT));
}

/*
 * The ages of a kind's blocks when their windows closed, as shares of the windows: sums of their
 * differences to a half.
 */
struct shares {
	double sum, nr, span_ns; /* of one window */
	double once, nr_windows; /* each window counts once */
	double by_span, squares; /* each counts by its span; of these, the sum of the squares */
};

static void end_window(struct shares *shares)
{
	if (shares->nr > 0) {
		shares->once += shares->sum / shares->nr;
		shares->nr_windows++;
		shares->by_span += shares->span_ns * shares->sum / shares->nr;
		shares->squares += shares->span_ns * shares->span_ns;
	}
	shares->sum = shares->nr = 0;
}

/*
 * Laplace's statistic of the blocks that are at least @from_ns old when their windows close. 0:
 * there are none. The blocks of a window count as one: they may come together.
 */
static double laplace(const struct judge *judge, uint64_t from_ns)
{
	struct shares shares = {0};
	uint64_t closed_ns = 0;

	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct sure_age *sure = sure_age_of(judge, block);
		double age_ns = (double)age_at_close_ns(sure, block) - (double)from_ns;
		double window_ns = span_ns(sure) - (double)from_ns;

		if (!seems_to_stay(sure) || age_ns < 0 || age_ns >= window_ns)
			continue;
		if (sure->closed_ns != closed_ns)
			end_window(&shares);
		closed_ns = sure->closed_ns;
		shares.span_ns = window_ns;
		shares.sum += age_ns / window_ns - 0.5;
		shares.nr++;
	}
	end_window(&shares);
	if (shares.nr_windows == 0)
		return 0;
	/* What lives as long as short windows is young in long ones only. */
	return fmin(shares.once * sqrt(12 / shares.nr_windows),
		    shares.by_span * sqrt(12 / shares.squares));
}

/* The processes do not have the memory for all blocks that seem to stay. */
static bool exceed_memory(const struct judge *judge)
{
	double bytes = 0;

	for (size_t i = 0; judge->input->memory_bytes && i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);

		if (seems_to_stay(sure_age_of(judge, block)))
			bytes += judge_stands_for(judge, block) *
				 fmin((double)block->size_bytes, PAGE_BYTES);
	}
	return bytes > MAX_MEMORY_FACTOR * (double)judge->input->memory_bytes;
}

/* What is known of a kind when its windows close: the lives that had ended, and the others. */
struct closes {
	uint32_t staying[LIFETIME_BUCKETS]; /* by age */
	double nr_staying;
	bool have_ends; /* in judge->survival */
};

static void look_at_closes(struct judge *judge, const struct site *site, struct closes *ret)
{
	uint32_t ages[LIFETIME_BUCKETS] = {0};

	*ret = (struct closes){0};
	for (size_t i = 0; i < judge->nr; i++) {
		const struct heap_block *block = block_at(judge, i);
		const struct sure_age *sure = sure_age_of(judge, block);
		bool is_open = sure->closed_ns == UINT64_MAX;
		unsigned int at = lifetime_bucket(is_open ? judge_age_ns(judge, block)
							  : age_at_close_ns(sure, block));

		ages[at]++;
		ret->staying[at] += seems_to_stay(sure);
		ret->nr_staying += seems_to_stay(sure);
	}
	if (!site->frees)
		return;
	survival_init_windows(&judge->survival, site, ages, SITE_LATE_CLASSES);
	ret->have_ends = judge->survival.tail_ns > 0;
}

/*
 * Finds the age from which on lives that end do not explain the blocks that seem to stay. Returns
 * it as a number of classes (site_late_ns()), MAX_IN_FLIGHT at most.
 */
static unsigned int find_old(const struct judge *judge, const struct site *site,
			     const struct closes *closes)
{
	double nr = closes->nr_staying, share = followed_share(site->history->windows);
	unsigned int bucket = 0, classes = 1;

	for (; classes < MAX_IN_FLIGHT; classes++) {
		uint64_t age_ns = site_late_ns(classes);
		double expected = share * survival_expected(&judge->survival, (double)age_ns);

		while (bucket < lifetime_bucket(age_ns))
			nr -= closes->staying[bucket++];
		if (nr > 0 && expected <= MAX_IN_FLIGHT_SHARE * nr &&
		    survival_log_chance(nr, expected) <= MAX_IN_FLIGHT_CHANCE)
			break;
	}
	return classes;
}

/* The same where no life ended in a window: from that age on, the ages are even. */
static unsigned int find_even(const struct judge *judge)
{
	unsigned int classes = 1;

	while (classes < MAX_IN_FLIGHT &&
	       laplace(judge, site_late_ns(classes)) < MAX_LAPLACE_UNSURE)
		classes++;
	return classes;
}

void judge_find_in_flight(struct judge *judge, const struct site *site)
{
	struct closes closes;
	double youth;
	bool exceeds;

	judge->nr_in_flight = 0;
	if (!judge->input->observed)
		return;
	youth = laplace(judge, 0);
	exceeds = site->frees && exceed_memory(judge);
	if (youth >= MAX_LAPLACE && !exceeds)
		return;
	look_at_closes(judge, site, &closes);
	if (closes.have_ends)
		judge->nr_in_flight = find_old(judge, site, &closes);
	else if (exceeds)
		judge->nr_in_flight = MAX_IN_FLIGHT;
	else if (youth < MAX_LAPLACE_UNSURE)
		judge->nr_in_flight = find_even(judge);
}

static bool is_younger(const struct judge *judge, const struct heap_block *block, uint64_t age_ns)
{
	const struct sure_age *sure = sure_age_of(judge, block);

	return sure->closed_ns != UINT64_MAX && age_at_close_ns(sure, block) < age_ns;
}

bool judge_is_in_flight(const struct judge *judge, const struct heap_block *block)
{
	return is_younger(judge, block, site_late_ns(judge->nr_in_flight));
}

unsigned int judge_nr_young(const struct judge *judge)
{
	return judge->nr_in_flight ? judge->nr_in_flight : MIN_YOUNG;
}

bool judge_is_young(const struct judge *judge, const struct heap_block *block)
{
	return is_younger(judge, block, site_late_ns(judge_nr_young(judge)));
}

bool judge_outlived_flight(const struct judge *judge, const struct heap_block *block,
			   double longest_ns)
{
	const struct sure_age *sure = sure_age_of(judge, block);

	return sure->closed_ns == UINT64_MAX ||
	       (double)age_at_close_ns(sure, block) >=
		       fmax((double)site_late_ns(MAX_IN_FLIGHT), longest_ns);
}

double judge_in_flight_factor(const struct judge *judge, const struct heap_block *block)
{
	double window_ns = (double)sure_age_of(judge, block)->window_ns;
	double young_ns = (double)site_late_ns(judge->nr_in_flight);

	/* Of an open window, or of one without a length, it is 0. */
	return window_ns > young_ns ? window_ns / (window_ns - young_ns) : 1;
}
