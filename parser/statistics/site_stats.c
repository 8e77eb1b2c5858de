/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/site_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 20 /* periods of a millisecond */
#define FIRST_SITES 256
#define NO_SITE	    0u /* in site_of_stack; other values are an index + 1 */
/* In a shorter one, a program that has its CPU may work without allocating, or wait for a timer. */
#define PAUSE_NS 20000000

struct site_stats {
	struct site *sites;
	size_t nr, capacity;
	uint32_t *site_of_stack; /* [stack id] */
	size_t nr_stacks;
	uint64_t origin_ns;	/* the start of the first period; 0: none yet */
	uint64_t last_ns;	/* the last allocation; before the first one, the origin */
	uint64_t busy_ns;	/* site_stats_busy_ns() */
	uint64_t present_bytes; /* of all sites */
	struct site_peak peak;
	uint32_t nr_peaks;
};

struct site_stats *site_stats_create(void)
{
	return calloc(1, sizeof(struct site_stats));
}

static void free_history(struct site_history *history)
{
	if (history)
		lifetime_sketch_deinit(&history->lifetimes);
	if (history && history->windows) {
		lifetime_sketch_deinit(&history->windows->unobserved);
		lifetime_sketch_deinit(&history->windows->late_at_close);
		for (unsigned int i = 0; i < SITE_LATE_CLASSES; i++)
			lifetime_sketch_deinit(&history->windows->late[i]);
	}
	if (history)
		free(history->windows);
	free(history);
}

void site_stats_destroy(struct site_stats *stats)
{
	if (!stats)
		return;
	for (size_t i = 0; i < stats->nr; i++)
		free_history(stats->sites[i].history);
	free(stats->sites);
	free(stats->site_of_stack);
	free(stats);
}

static int grow_index(struct site_stats *stats, uint32_t stack_id)
{
	size_t nr = stats->nr_stacks ? stats->nr_stacks : FIRST_SITES;
	uint32_t *grown;

	while (nr <= stack_id)
		nr *= 2;
	grown = reallocarray(stats->site_of_stack, nr, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (size_t i = stats->nr_stacks; i < nr; i++)
		grown[i] = NO_SITE;
	stats->site_of_stack = grown;
	stats->nr_stacks = nr;
	return 0;
}

void site_stats_begin(struct site_stats *stats, uint64_t time_ns)
{
	if (!stats->origin_ns)
		stats->origin_ns = stats->last_ns = time_ns;
}

static int add_site(struct site_stats *stats, const struct site_block *block)
{
	if (block->stack_id >= stats->nr_stacks) {
		int err = grow_index(stats, block->stack_id);

		if (err)
			return err;
	}
	if (!stats->sites || stats->nr == stats->capacity) {
		size_t capacity = stats->capacity ? stats->capacity * 2 : FIRST_SITES;
		struct site *grown = reallocarray(stats->sites, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		stats->sites = grown;
		stats->capacity = capacity;
	}
	site_stats_begin(stats, block->time_ns);
	stats->sites[stats->nr++] = (struct site){
		.stack_id = block->stack_id,
		.first_ns = block->time_ns,
		.last_ns = block->time_ns,
	};
	stats->site_of_stack[block->stack_id] = (uint32_t)stats->nr;
	return 0;
}

static inline struct site *find(const struct site_stats *stats, uint32_t stack_id)
{
	uint32_t index = stack_id < stats->nr_stacks ? stats->site_of_stack[stack_id] : NO_SITE;

	return index == NO_SITE ? NULL : &stats->sites[index - 1];
}

/*
 * Call it before the present amounts of @site change. A new peak copies nothing: a site saves its
 * amounts when it first changes after the peak.
 */
static inline void save_at_peak(const struct site_stats *stats, struct site *site)
{
	if (site->peak_nr == stats->nr_peaks)
		return;
	site->at_peak_bytes = site_present_bytes(site);
	site->at_peak_blocks = site_present_blocks(site);
	site->peak_nr = stats->nr_peaks;
}

/* The program chooses sizes, so sums may wrap; such a sum is no peak. */
static inline void add_present(struct site_stats *stats, uint64_t bytes, uint64_t time_ns)
{
	stats->present_bytes += bytes;
	if ((int64_t)stats->present_bytes <= 0 || stats->present_bytes <= stats->peak.bytes)
		return;
	stats->peak = (struct site_peak){stats->present_bytes, time_ns};
	stats->nr_peaks++;
}

static void fold_counts(uint32_t *counts)
{
	for (size_t i = 0; i < SITE_PERIODS / 2; i++)
		counts[i] = counts[2 * i] + counts[2 * i + 1];
	memset(&counts[SITE_PERIODS / 2], 0, SITE_PERIODS / 2 * sizeof(*counts));
}

/* Doubles the periods. */
static void fold(struct site_history *history)
{
	struct site_period *periods = history->periods;

	for (size_t i = 0; i < SITE_PERIODS / 2; i++) {
		const struct site_period *first = &periods[2 * i], *second = first + 1;

		periods[i] = (struct site_period){
			.allocated = first->allocated + second->allocated,
			.ended = first->ended + second->ended,
			.added_bytes = first->added_bytes + second->added_bytes,
		};
	}
	memset(&periods[SITE_PERIODS / 2], 0, sizeof(history->periods) / 2);
	if (history->windows) {
		fold_counts(history->windows->outlived);
		fold_counts(history->windows->followed);
	}
	history->shift++;
}

/*
 * The period of @time_ns. A time before the origin, after a step of the clock, is in the first
 * period.
 */
static inline struct site_period *period_of(const struct site_stats *stats,
					    struct site_history *history, uint64_t time_ns)
{
	uint64_t since_ns = time_ns > stats->origin_ns ? time_ns - stats->origin_ns : 0;

	while (since_ns >> history->shift >= SITE_PERIODS)
		fold(history);
	return &history->periods[since_ns >> history->shift];
}

/* The program chooses sizes, so sums may wrap. They come back when the blocks end. */
static inline void add_bytes(struct site_period *period, uint64_t bytes)
{
	period->added_bytes = (int64_t)((uint64_t)period->added_bytes + bytes);
}

/* Blocks that are older than the last one, such as the parts of a mapping, tell nothing new. */
static inline void note_busy(struct site_stats *stats, uint64_t time_ns)
{
	if (time_ns <= stats->last_ns)
		return;
	if (time_ns - stats->last_ns <= PAUSE_NS)
		stats->busy_ns += time_ns - stats->last_ns;
	stats->last_ns = time_ns;
}

/* Most sites allocate only once and need no history. */
static int begin_history(const struct site_stats *stats, struct site *site)
{
	site->history = calloc(1, sizeof(*site->history));
	if (!site->history)
		return -ENOMEM;
	site->history->shift = FIRST_SHIFT;
	if (site->allocations) {
		struct site_period *period = period_of(stats, site->history, site->first_ns);

		period->allocated++;
		add_bytes(period, site->held_bytes);
	}
	return 0;
}

int site_stats_enter(struct site_stats *stats, const struct site_block *block)
{
	struct site *site = find(stats, block->stack_id);
	struct site_period *period;
	int err;

	if (!site) {
		err = add_site(stats, block);
		if (err)
			return err;
		site = &stats->sites[stats->nr - 1];
	} else {
		if (!site->history) {
			err = begin_history(stats, site);
			if (err)
				return err;
		}
		period = period_of(stats, site->history, block->time_ns);
		period->allocated++;
		add_bytes(period, block->size_bytes);
	}
	note_busy(stats, block->time_ns);
	save_at_peak(stats, site);
	site->allocations++;
	site->allocated_bytes += block->size_bytes;
	site->held_bytes += block->size_bytes;
	add_present(stats, block->size_bytes, block->time_ns);
	if (site_present_bytes(site) > site->peak_bytes)
		site->peak_bytes = site_present_bytes(site);
	if (site_present_blocks(site) > site->peak_blocks)
		site->peak_blocks = site_present_blocks(site);
	/* When a mapping is cut, its parts enter again with its age. */
	if (block->time_ns > site->last_ns)
		site->last_ns = block->time_ns;
	return 0;
}

/* Counts the end of @block in its period. */
static inline int end_in_period(struct site_stats *stats, struct site *site,
				const struct site_block *block, uint64_t time_ns)
{
	struct site_period *period;

	if (!site->history) {
		int err = begin_history(stats, site);

		if (err)
			return err;
	}
	period = period_of(stats, site->history, time_ns);
	period->ended++;
	add_bytes(period, -block->size_bytes);
	stats->present_bytes -= block->size_bytes;
	return 0;
}

static inline int end_block(struct site_stats *stats, struct site *site,
			    const struct site_block *block, uint64_t time_ns)
{
	int err = end_in_period(stats, site, block, time_ns);

	if (!err)
		site->held_bytes -= block->size_bytes;
	return err;
}

/* What a block lived before the first period is not counted: nothing is known of others then. */
static uint64_t lifetime_ns(const struct site_stats *stats, const struct site_block *block,
			    uint64_t time_ns)
{
	uint64_t from_ns = block->time_ns > stats->origin_ns ? block->time_ns : stats->origin_ns;

	return time_ns > from_ns ? time_ns - from_ns : 0;
}

int site_stats_leave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);
	int err;

	if (!site)
		return 0;
	save_at_peak(stats, site);
	err = end_block(stats, site, block, time_ns);
	if (err)
		return err;
	site->frees++;
	return lifetime_sketch_add(&site->history->lifetimes, lifetime_ns(stats, block, time_ns));
}

int site_stats_leave_late(struct site_stats *stats, const struct site_block *block,
			  uint64_t closed_ns, uint64_t time_ns)
{
	uint64_t age_ns = lifetime_ns(stats, block, closed_ns);
	struct site *site = find(stats, block->stack_id);
	int err = site_stats_leave(stats, block, time_ns);
	struct site_windows *windows;
	unsigned int at = 0;

	if (err || !site || !site->history->windows)
		return err;
	windows = site->history->windows;
	while (at + 1 < SITE_LATE_CLASSES && age_ns >= site_late_ns(at + 1))
		at++;
	err = lifetime_sketch_add(&windows->late[at], lifetime_ns(stats, block, time_ns));
	return err ? err : lifetime_sketch_add(&windows->late_at_close, age_ns);
}

void site_stats_note_temporary(struct site_stats *stats, uint32_t stack_id)
{
	struct site *site = find(stats, stack_id);

	if (site)
		site->temporaries++;
}

int site_stats_vanish(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site)
		return 0;
	save_at_peak(stats, site);
	site->vanished++;
	return end_block(stats, site, block, time_ns);
}

int site_stats_drop(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site)
		return 0;
	save_at_peak(stats, site);
	site->dropped++;
	return end_block(stats, site, block, time_ns);
}

/*
 * The place of a count in @history->windows for @block. The periods last as long as the windows:
 * they are folded together.
 */
static size_t window_index(const struct site_stats *stats, struct site_history *history,
			   const struct site_block *block)
{
	return (size_t)(period_of(stats, history, block->time_ns) - history->periods);
}

int site_stats_outlive(struct site_stats *stats, const struct site_block *block, uint64_t closed_ns)
{
	struct site *site = find(stats, block->stack_id);
	struct site_history *history;
	int err = site && !site->history ? begin_history(stats, site) : 0;

	if (err || !site)
		return err;
	history = site->history;
	if (!history->windows)
		history->windows = calloc(1, sizeof(*history->windows));
	if (!history->windows)
		return -ENOMEM;
	history->windows->outlived[window_index(stats, history, block)]++;
	return lifetime_sketch_add(&history->windows->unobserved,
				   lifetime_ns(stats, block, closed_ns));
}

void site_stats_follow(struct site_stats *stats, const struct site_block *block, uint64_t closed_ns)
{
	struct site *site = find(stats, block->stack_id);
	struct site_history *history = site ? site->history : NULL;

	if (!history || !history->windows)
		return;
	history->windows->followed[window_index(stats, history, block)]++;
	lifetime_sketch_remove(&history->windows->unobserved, lifetime_ns(stats, block, closed_ns));
}

int site_stats_lose_sight(struct site_stats *stats, const struct site_block *block,
			  uint64_t closed_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site)
		return 0;
	save_at_peak(stats, site);
	site->unobserved++;
	return end_block(stats, site, block, closed_ns);
}

int site_stats_exit(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site)
		return 0;
	save_at_peak(stats, site);
	site->exited++;
	site->exited_bytes += block->size_bytes;
	return end_in_period(stats, site, block, time_ns);
}

/* Undoes end_in_period(). */
static void unend_in_period(struct site_stats *stats, struct site *site,
			    const struct site_block *block, uint64_t time_ns)
{
	struct site_period *period = period_of(stats, site->history, time_ns);

	period->ended -= period->ended > 0;
	add_bytes(period, block->size_bytes);
}

void site_stats_unexit(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site || !site->history || !site->exited)
		return;
	save_at_peak(stats, site);
	unend_in_period(stats, site, block, time_ns);
	site->exited--;
	site->exited_bytes -= block->size_bytes;
	add_present(stats, block->size_bytes, time_ns);
}

void site_stats_withdraw(struct site_stats *stats, const struct site_block *block)
{
	struct site *site = find(stats, block->stack_id);

	if (!site || !site->allocations)
		return;
	save_at_peak(stats, site);
	stats->present_bytes -= block->size_bytes;
	site->allocations--;
	site->allocated_bytes -= block->size_bytes;
	site->held_bytes -= block->size_bytes;
	if (site->history) {
		struct site_period *period = period_of(stats, site->history, block->time_ns);

		period->allocated -= period->allocated > 0;
		add_bytes(period, -block->size_bytes);
	}
}

void site_stats_unleave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns)
{
	struct site *site = find(stats, block->stack_id);

	if (!site || !site->history || !site->frees)
		return;
	save_at_peak(stats, site);
	unend_in_period(stats, site, block, time_ns);
	site->frees--;
	site->held_bytes += block->size_bytes;
	add_present(stats, block->size_bytes, time_ns);
	lifetime_sketch_remove(&site->history->lifetimes, lifetime_ns(stats, block, time_ns));
}

const struct site *site_stats_list(const struct site_stats *stats, size_t *ret_nr)
{
	*ret_nr = stats->nr;
	return stats->sites;
}

const struct site *site_stats_find(const struct site_stats *stats, uint32_t stack_id)
{
	return find(stats, stack_id);
}

/* The periods of @sum are at least as long as those of @history. */
static int add_windows(struct site_history *sum, const struct site_history *history)
{
	const struct site_windows *from = history->windows;

	if (!sum->windows)
		sum->windows = calloc(1, sizeof(*sum->windows));
	if (!sum->windows)
		return -ENOMEM;
	for (size_t i = 0; i < SITE_PERIODS; i++) {
		size_t index = i >> (sum->shift - history->shift);

		sum->windows->outlived[index] += from->outlived[i];
		sum->windows->followed[index] += from->followed[i];
	}
	for (unsigned int i = 0; i < SITE_LATE_CLASSES; i++)
		if (lifetime_sketch_merge(&sum->windows->late[i], &from->late[i]))
			return -ENOMEM;
	if (lifetime_sketch_merge(&sum->windows->unobserved, &from->unobserved))
		return -ENOMEM;
	return lifetime_sketch_merge(&sum->windows->late_at_close, &from->late_at_close);
}

/* Adds the history of one site to another's, whose periods first become at least as long. */
static int add_history(struct site_history *sum, const struct site_history *history)
{
	while (sum->shift < history->shift)
		fold(sum);
	for (size_t i = 0; i < SITE_PERIODS; i++) {
		struct site_period *period = &sum->periods[i >> (sum->shift - history->shift)];

		period->allocated += history->periods[i].allocated;
		period->ended += history->periods[i].ended;
		add_bytes(period, (uint64_t)history->periods[i].added_bytes);
	}
	if (history->windows && add_windows(sum, history))
		return -ENOMEM;
	return lifetime_sketch_merge(&sum->lifetimes, &history->lifetimes);
}

int site_stats_sum(const struct site_stats *stats, struct site *sum, const struct site *site)
{
	int err = sum->history ? 0 : begin_history(stats, sum);

	if (err)
		return err;
	if (site->history) {
		err = add_history(sum->history, site->history);
	} else {
		struct site_period *period = period_of(stats, sum->history, site->first_ns);

		period->allocated += site->allocations;
		add_bytes(period, site->held_bytes);
	}
	if (!sum->first_ns || site->first_ns < sum->first_ns)
		sum->first_ns = site->first_ns;
	if (site->last_ns > sum->last_ns)
		sum->last_ns = site->last_ns;
	sum->stack_id = site->stack_id;
	sum->vanished += site->vanished;
	sum->allocations += site->allocations;
	sum->frees += site->frees;
	sum->dropped += site->dropped;
	sum->unobserved += site->unobserved;
	sum->temporaries += site->temporaries;
	sum->allocated_bytes += site->allocated_bytes;
	sum->held_bytes += site->held_bytes;
	sum->peak_bytes += site->peak_bytes;
	sum->peak_blocks += site->peak_blocks;
	return err;
}

void site_sum_deinit(struct site *sum)
{
	free_history(sum->history);
}

struct site_peak site_stats_peak(const struct site_stats *stats)
{
	return stats->peak;
}

void site_at_peak(const struct site_stats *stats, const struct site *site, uint64_t *ret_bytes,
		  uint64_t *ret_blocks)
{
	bool has_changed = site->peak_nr == stats->nr_peaks;

	*ret_bytes = has_changed ? site->at_peak_bytes : site_present_bytes(site);
	*ret_blocks = has_changed ? site->at_peak_blocks : site_present_blocks(site);
}

uint64_t site_stats_origin(const struct site_stats *stats)
{
	return stats->origin_ns;
}

uint64_t site_stats_busy_ns(const struct site_stats *stats)
{
	return stats->busy_ns;
}
