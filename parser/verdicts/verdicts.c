/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/verdicts.h"

#include "common/scope.h"
#include "parser/verdicts/survival.h"

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
/* Not significant, but not ordinary either. */
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
/* If more than this share of a site's frees was missed, that was no accident. */
#define UNSEEN_SHARE 0.05

#define NS_PER_S     1e9
#define MIN_AGE_NS   1000 /* about as long as a probe takes */

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICT_NR] = {
		[VERDICT_GROWTH] = "growth",   [VERDICT_OVERDUE] = "overdue",
		[VERDICT_BURST] = "burst",     [VERDICT_UNCLEAR] = "unclear",
		[VERDICT_PLATEAU] = "plateau", [VERDICT_STARTUP] = "start-up",
		[VERDICT_NOT_YET] = "not-yet", [VERDICT_AT_EXIT] = "at-exit",
	};

	return names[verdict];
}

const char *doubt_name(unsigned int index)
{
	static const char *const names[DOUBT_NR] = {"lost", "truncated", "unpaired", "unseen-free"};

	return names[index];
}

/* State for judging one site. */
struct judge {
	struct verdicts *verdicts;
	const struct verdict_input *input;
	double common_p99_ns; /* of all lifetimes */
	double length_ns;     /* of the recording */
	/* Events lost in the loss windows from [i] on. */
	uint64_t lost_from[LOSS_MAX_WINDOWS + 1];
	const struct loss_window *windows;
	size_t nr_windows;
	struct arrival *arrivals; /* for the largest site */
	struct survival survival;
	/* The site's blocks, without those that ended with their processes. */
	size_t nr_present;
	uint32_t ages[LIFETIME_BUCKETS];
	float ordinary[LIFETIME_BUCKETS];
};

static const struct heap_block *block_at(const struct judge *judge, const struct site_verdict *site,
					 size_t i)
{
	return &judge->input->held[judge->verdicts->order[site->first + i]];
}

static struct block_verdict *verdict_at(const struct judge *judge, const struct site_verdict *site,
					size_t i)
{
	return &judge->verdicts->blocks[judge->verdicts->order[site->first + i]];
}

/* The time in which a block could be seen: that of its process in the recording. */
struct view {
	uint64_t start_ns, end_ns;
	bool exited;
	bool gone; /* its process ended early, and lived for only a part of the recording */
};

static struct view view_of(const struct judge *judge, const struct heap_block *block)
{
	const struct verdict_input *input = judge->input;
	struct view view = {.start_ns = input->start_ns, .end_ns = input->end_ns};
	struct process_life life = {0};

	if (input->process_life)
		life = input->process_life(input->context, block->allocated.pid,
					   block->allocated.time_ns);
	if (life.start_ns > view.start_ns && life.start_ns <= block->allocated.time_ns)
		view.start_ns = life.start_ns;
	if (!life.end_ns || life.end_ns >= input->end_ns)
		return view;
	view.exited = true;
	view.end_ns = life.end_ns > view.start_ns ? life.end_ns : view.start_ns;
	view.gone = (double)(input->end_ns - view.end_ns) > TOO_YOUNG_SHARE * judge->length_ns &&
		    (double)(view.end_ns - view.start_ns) < GONE_SHARE * judge->length_ns;
	return view;
}

static uint64_t age_ns(const struct view *view, const struct heap_block *block)
{
	return view->end_ns > block->allocated.time_ns ? view->end_ns - block->allocated.time_ns
						       : 0;
}

/* The number of lost events that may belong to a block allocated at @time_ns. */
static uint64_t lost_since(const struct judge *judge, uint64_t time_ns)
{
	size_t low = 0, high = judge->nr_windows;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (judge->windows[middle].end_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return judge->lost_from[low] + judge->input->lost_any_time;
}

static unsigned int doubts_about(const struct judge *judge, const struct heap_block *block,
				 const struct site *site)
{
	const struct verdict_input *input = judge->input;
	unsigned int doubts = 0;

	if (input->lost_unknown || lost_since(judge, block->allocated.time_ns))
		doubts |= DOUBT_LOST;
	if (input->truncated)
		doubts |= DOUBT_TRUNCATED;
	if (!block->size_known || (input->unpaired_reallocs &&
				   input->last_unpaired_realloc_ns >= block->allocated.time_ns))
		doubts |= DOUBT_UNPAIRED;
	if (site->vanished)
		doubts |= DOUBT_UNSEEN;
	return doubts;
}

/*
 * Decides which of the site's blocks are certainly held. Each lost event can explain only one
 * block.
 */
static void judge_certainty(const struct judge *judge, struct site_verdict *verdict)
{
	const struct site *site = verdict->site;
	uint64_t doubtful = 0, explained, half_seen = 0;
	unsigned int doubts = 0;

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		const struct heap_block *block = block_at(judge, verdict, i);
		unsigned int of_block = doubts_about(judge, block, site);

		verdict_at(judge, verdict, i)->doubts = (uint8_t)of_block;
		doubtful += of_block != 0;
		doubts |= of_block;
		half_seen += !block->size_known;
	}
	explained = lost_since(judge, block_at(judge, verdict, 0)->allocated.time_ns) + half_seen;
	if (doubts & DOUBT_UNPAIRED)
		explained += judge->input->unpaired_reallocs;
	explained += site->vanished;
	if ((double)site->vanished > UNSEEN_SHARE * (double)(site->frees + site->vanished) ||
	    judge->input->lost_unknown || (doubts & DOUBT_TRUNCATED) || explained > doubtful)
		explained = doubtful;
	verdict->firm_blocks = verdict->held_blocks - explained;
	verdict->doubts = verdict->firm_blocks * 2 >= verdict->held_blocks ? 0 : doubts;
}

/*
 * The lowest age from which on the site's blocks are suspect, or a negative number. Fills
 * judge->ordinary for each age. *@ret_lowest is its minimum.
 */
static double suspect_age_ns(struct judge *judge, float *ret_lowest)
{
	double nr = (double)judge->nr_present, age_ns_found = -1;
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
	judge->nr_present = 0;
	verdict->exited = true;
	for (size_t i = 0; i < verdict->held_blocks; i++) {
		const struct heap_block *block = block_at(judge, verdict, i);
		struct view view = view_of(judge, block);
		uint64_t block_age_ns = age_ns(&view, block);

		verdict->exited &= view.exited;
		if (block_age_ns > oldest_ns)
			oldest_ns = block_age_ns;
		verdict->held_bytes += block->size_bytes;
		if (view.gone)
			continue;
		judge->ages[lifetime_bucket(block_age_ns)]++;
		judge->nr_present++;
	}
	verdict->oldest_s = (double)oldest_ns / NS_PER_S;
	verdict->median_s = verdict->p99_s = -1;
	if (verdict->site->frees) {
		const struct lifetime_sketch *lifetimes = &verdict->site->history->lifetimes;

		verdict->median_s = lifetime_sketch_quantile(lifetimes, 0.5) / NS_PER_S;
		verdict->p99_s = lifetime_sketch_quantile(lifetimes, 0.99) / NS_PER_S;
	}
}

/*
 * Collects the blocks of at least that age and their arrivals. *@ret_start_s to *@ret_end_s is the
 * time in which they could arrive. Returns their number.
 */
static size_t collect_suspects(struct judge *judge, struct site_verdict *verdict, double min_age_ns,
			       double *ret_start_s, double *ret_end_s)
{
	uint64_t zero_ns = judge->input->start_ns, start_ns = UINT64_MAX, end_ns = zero_ns;
	size_t nr = 0;

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		const struct heap_block *block = block_at(judge, verdict, i);
		struct view view = view_of(judge, block);
		uint64_t time_ns = block->allocated.time_ns;

		if (view.gone)
			continue;
		if (view.start_ns < start_ns)
			start_ns = view.start_ns;
		if (view.end_ns > end_ns)
			end_ns = view.end_ns;
		if ((double)age_ns(&view, block) < min_age_ns)
			continue;
		judge->arrivals[nr++] = (struct arrival){
			.time_s = (double)(time_ns > zero_ns ? time_ns - zero_ns : 0) / NS_PER_S,
			.bytes = (double)block->size_bytes,
		};
		verdict->suspect_bytes += block->size_bytes;
	}
	verdict->suspect_blocks = nr;
	*ret_start_s = (double)(start_ns - zero_ns) / NS_PER_S;
	*ret_end_s = ((double)(end_ns - zero_ns) - min_age_ns) / NS_PER_S;
	return nr;
}

/* The verdict of a site that frees, with overdue blocks. */
static enum verdict judge_overdue(const struct judge *judge, enum growth_pattern pattern, size_t nr,
				  double start_s, double end_s)
{
	switch (pattern) {
	case GROWTH_STEADY:
		return VERDICT_GROWTH;
	case GROWTH_AT_START:
		return VERDICT_STARTUP;
	case GROWTH_STOPPED:
		if (nr >= STOPPED_ARRIVALS &&
		    judge->arrivals[nr - 1].time_s < start_s + STOPPED_BEFORE * (end_s - start_s))
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

static void judge_site(struct judge *judge, struct site_verdict *verdict)
{
	const struct site *site = verdict->site;
	bool freed = site->frees > 0;
	double min_age_ns = 0, start_s, end_s;
	enum growth_pattern pattern;
	float lowest = 1;
	size_t nr;

	look_at_blocks(judge, verdict);
	judge_certainty(judge, verdict);
	if (freed) {
		survival_init(&judge->survival, site, site_stats_origin(judge->input->sites),
			      judge->input->end_ns);
		min_age_ns = suspect_age_ns(judge, &lowest);
	}
	if (!judge->nr_present) {
		verdict->verdict = VERDICT_AT_EXIT;
	} else if (min_age_ns < 0) {
		verdict->verdict = lowest <= UNCLEAR_ORDINARY ? VERDICT_UNCLEAR : VERDICT_NOT_YET;
	} else {
		nr = collect_suspects(judge, verdict, min_age_ns, &start_s, &end_s);
		pattern = growth_fit(judge->arrivals, nr, start_s, end_s, &verdict->rate);
		/* The short life of a process has no rate. */
		if (pattern == GROWTH_STEADY &&
		    (end_s - start_s) * NS_PER_S <= TOO_YOUNG_SHARE * judge->length_ns)
			pattern = GROWTH_FEW;
		verdict->verdict =
			freed && (double)nr < NEVER_FREED_SHARE * (double)site->allocations
				? judge_overdue(judge, pattern, nr, start_s, end_s)
				: judge_kept(judge, verdict, pattern);
		verdict->has_rate = pattern == GROWTH_STEADY;
	}
	for (size_t i = 0; i < verdict->held_blocks; i++) {
		struct block_verdict *block = verdict_at(judge, verdict, i);
		struct view view = view_of(judge, block_at(judge, verdict, i));
		uint64_t block_age_ns = age_ns(&view, block_at(judge, verdict, i));

		block->verdict = (uint8_t)verdict->verdict;
		if (view.gone)
			block->verdict = VERDICT_AT_EXIT;
		else if (min_age_ns > 0 && (double)block_age_ns < min_age_ns)
			block->verdict = VERDICT_NOT_YET;
		block->ordinary = freed ? judge->ordinary[lifetime_bucket(block_age_ns)] : -1;
		judge->verdicts->blocks_of[block->verdict]++;
		judge->verdicts->bytes_of[block->verdict] +=
			block_at(judge, verdict, i)->size_bytes;
	}
	judge->verdicts->firm_blocks += verdict->firm_blocks;
}

/* Groups the blocks by site. *@ret_most is the largest number of blocks of a site. */
static int group(struct verdicts *verdicts, const struct verdict_input *input, size_t *ret_most)
{
	size_t nr_all;
	const struct site *all = site_stats_list(input->sites, &nr_all);
	/*
	 * By index into @all: first the number of blocks, then the site's index + 1 among those
	 * with blocks.
	 */
	_cleanup_free_ uint64_t *nr_of = calloc(nr_all + 1, sizeof(*nr_of));
	size_t first = 0;

	*ret_most = 0;
	if (!nr_of)
		return -ENOMEM;
	for (size_t i = 0; i < input->nr_held; i++) {
		const struct site *site =
			site_stats_find(input->sites, input->held[i].allocated.stack_id);
		size_t index = site ? (size_t)(site - all) : nr_all;

		verdicts->blocks[i].site = (uint32_t)index;
		nr_of[index]++;
	}
	for (size_t i = 0; i < nr_all; i++)
		verdicts->nr_sites += nr_of[i] > 0;
	verdicts->sites = calloc(verdicts->nr_sites + 1, sizeof(*verdicts->sites));
	if (!verdicts->sites)
		return -ENOMEM;
	verdicts->nr_sites = 0;
	for (size_t i = 0; i < nr_all; i++) {
		if (!nr_of[i])
			continue;
		if (nr_of[i] > *ret_most)
			*ret_most = nr_of[i];
		verdicts->sites[verdicts->nr_sites] = (struct site_verdict){
			.site = &all[i],
			.first = first,
		};
		first += nr_of[i];
		nr_of[i] = ++verdicts->nr_sites;
	}
	for (size_t i = 0; i < input->nr_held; i++) {
		struct block_verdict *block = &verdicts->blocks[i];
		struct site_verdict *site;

		if (block->site ==
		    nr_all) /* impossible: the heap model counts each block that it holds */
			return -EINVAL;
		block->site = (uint32_t)(nr_of[block->site] - 1);
		site = &verdicts->sites[block->site];
		verdicts->order[site->first + site->held_blocks++] = (uint32_t)i;
	}
	return 0;
}

static double common_p99_ns(const struct site_stats *stats, int *ret_err)
{
	struct lifetime_sketch all = {0};
	double p99_ns;
	size_t nr;
	const struct site *sites = site_stats_list(stats, &nr);

	*ret_err = 0;
	for (size_t i = 0; i < nr && !*ret_err; i++)
		if (sites[i].history)
			*ret_err = lifetime_sketch_merge(&all, &sites[i].history->lifetimes);
	p99_ns = lifetime_sketch_quantile(&all, 0.99);
	lifetime_sketch_deinit(&all);
	return p99_ns;
}

/* Growth and overdue are two views of the same bug. */
static int tier(const struct site_verdict *site)
{
	return site->verdict == VERDICT_OVERDUE ? VERDICT_GROWTH : (int)site->verdict;
}

static double weight(const struct site_verdict *site)
{
	double blocks = (double)(site->suspect_blocks ? site->suspect_blocks : site->held_blocks);
	double bytes = (double)(site->suspect_blocks ? site->suspect_bytes : site->held_bytes);
	double firm = (double)site->firm_blocks / (double)site->held_blocks;

	return (blocks + bytes) * (0.1 + 0.9 * firm);
}

static int compare_sites(const void *a, const void *b)
{
	const struct site_verdict *x = a, *y = b;
	double x_weight = weight(x), y_weight = weight(y);

	if (tier(x) != tier(y))
		return tier(x) < tier(y) ? -1 : 1;
	if (x_weight < y_weight || x_weight > y_weight)
		return x_weight > y_weight ? -1 : 1;
	return (x->site->stack_id > y->site->stack_id) - (x->site->stack_id < y->site->stack_id);
}

static void rank(struct verdicts *verdicts)
{
	qsort(verdicts->sites, verdicts->nr_sites, sizeof(*verdicts->sites), compare_sites);
	for (size_t i = 0; i < verdicts->nr_sites; i++) {
		const struct site_verdict *site = &verdicts->sites[i];

		for (size_t j = 0; j < site->held_blocks; j++)
			verdicts->blocks[verdicts->order[site->first + j]].site = (uint32_t)i;
	}
}

static void sum_losses(struct judge *judge)
{
	if (judge->input->loss_windows)
		judge->windows = loss_windows_list(judge->input->loss_windows, &judge->nr_windows);
	for (size_t i = judge->nr_windows; i-- > 0;)
		judge->lost_from[i] = judge->lost_from[i + 1] + judge->windows[i].lost;
}

int verdicts_init(struct verdicts *verdicts, const struct verdict_input *input)
{
	_cleanup_free_ struct judge *judge = calloc(1, sizeof(*judge));
	_cleanup_free_ struct arrival *arrivals = NULL;
	size_t most;
	int err;

	*verdicts = (struct verdicts){.nr_blocks = input->nr_held};
	if (input->nr_held >= UINT32_MAX)
		return -E2BIG;
	verdicts->blocks = calloc(input->nr_held + 1, sizeof(*verdicts->blocks));
	verdicts->order = calloc(input->nr_held + 1, sizeof(*verdicts->order));
	if (!judge || !verdicts->blocks || !verdicts->order)
		return -ENOMEM;
	err = group(verdicts, input, &most);
	if (err)
		return err;
	arrivals = calloc(most + 1, sizeof(*arrivals));
	if (!arrivals)
		return -ENOMEM;
	judge->verdicts = verdicts;
	judge->input = input;
	judge->arrivals = arrivals;
	if (input->end_ns > input->start_ns)
		judge->length_ns = (double)(input->end_ns - input->start_ns);
	judge->common_p99_ns = common_p99_ns(input->sites, &err);
	if (err)
		return err;
	sum_losses(judge);
	for (size_t i = 0; i < verdicts->nr_sites; i++)
		judge_site(judge, &verdicts->sites[i]);
	rank(verdicts);
	return 0;
}

void verdicts_deinit(struct verdicts *verdicts)
{
	free(verdicts->sites);
	free(verdicts->blocks);
	free(verdicts->order);
	*verdicts = (struct verdicts){0};
}
