/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/causes.h"

#include "common/schema/resource_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 1024 /* of a stack; STACK_MAX_FRAMES */
#define MAX_FUNCTIONS                                                                              \
	128	       /* of a stack without recursion; those further inside are not compared      \
			*/
#define WEAK_BLOCKS 20 /* fewer say little about themselves */
#define MIN_BLOCKS  5  /* of sites that are judged together */
/* A callee with this share of what its caller holds is looked at alone. */
#define HEAVY_SHARE 0.2
/* So many callees of equal weight are of one kind, if their verdicts do not contradict. */
#define MANY_CALLEES 5
/* The share that may contradict. With so many blocks, much may look like a leak by chance. */
#define CONTRADICTION 0.1
/* Sites that always allocate together: */
#define TOGETHER_BLOCKS 10   /* fewer could do so by chance */
#define TOGETHER_RATIO	64   /* of their blocks; it is a whole number */
#define TOGETHER_KS	0.35 /* independent ones agree so well in 3 of 10,000 cases */
#define TOGETHER_CAUSES 64   /* so many are compared with each other */

#define NONE		SIZE_MAX

/*
 * A site that may join others. One that holds nothing belongs to no cause, but its frees tell how
 * long blocks of its callers live.
 */
struct member {
	const struct site *counts;
	struct site_verdict *site; /* NULL: it holds nothing */
	const uint64_t *path;	   /* in finder.functions */
	const uint32_t *frames;
	uint32_t nr; /* functions */
	double weight;
	size_t next; /* in its bag */
};

/* Members that belong together. A list. */
struct bag {
	size_t first, last;
	/* Of those that hold blocks: */
	size_t lowest, highest; /* by path */
	size_t nr;
	double weight;
};

/* A bag that is a cause. */
struct found {
	struct bag bag;
	struct site_verdict verdict;
	struct site sum;
	bool is_dropped; /* has become part of another one */
};

struct finder {
	struct verdicts *verdicts;
	const struct verdict_input *input;
	struct judge *judge;
	uint64_t *functions; /* MAX_FUNCTIONS of each member */
	uint32_t *frames;    /* the number of frames from the outermost one to that function */
	struct member *members;
	size_t nr_members;
	double *weight_before; /* [i]: of the first i members */
	struct found *found;
	size_t nr_found;
	uint32_t *order; /* the blocks of one bag */
	int err;
};

/* --- bags --- */

static struct bag empty_bag(void)
{
	return (struct bag){.first = NONE, .last = NONE, .lowest = NONE};
}

static void put(struct finder *finder, struct bag *bag, size_t index)
{
	struct member *member = &finder->members[index];

	member->next = NONE;
	if (bag->last == NONE)
		bag->first = index;
	else
		finder->members[bag->last].next = index;
	bag->last = index;
	if (!member->site)
		return;
	if (bag->lowest == NONE || index < bag->lowest)
		bag->lowest = index;
	if (index > bag->highest)
		bag->highest = index;
	bag->nr++;
	bag->weight += member->weight;
}

static void pour(struct finder *finder, struct bag *bag, const struct bag *from)
{
	for (size_t i = from->first, next; i != NONE; i = next) {
		next = finder->members[i].next;
		put(finder, bag, i);
	}
}

/* The number of functions that the paths of two members share, the outermost ones. */
static size_t nr_shared(const struct member *a, const struct member *b)
{
	size_t nr = 0;

	while (nr < a->nr && nr < b->nr && a->path[nr] == b->path[nr])
		nr++;
	return nr;
}

/* --- judging bags --- */

static int compare_indices(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Judges the blocks of the bag together. */
static int judge_bag(struct finder *finder, const struct bag *bag, struct found *ret,
		     struct judged_ages *ret_ages)
{
	size_t nr = 0;

	*ret = (struct found){.bag = *bag};
	for (size_t i = bag->first; i != NONE; i = finder->members[i].next) {
		const struct member *member = &finder->members[i];
		const struct site_verdict *site = member->site;
		int err = site_stats_sum(finder->input->sites, &ret->sum, member->counts);

		if (err)
			return err;
		if (!site)
			continue;
		memcpy(&finder->order[nr], &finder->verdicts->order[site->first],
		       site->held_blocks * sizeof(*finder->order));
		nr += site->held_blocks;
	}
	qsort(finder->order, nr, sizeof(*finder->order), compare_indices);
	ret->verdict = (struct site_verdict){.site = &ret->sum, .held_blocks = nr};
	judge_blocks(finder->judge, finder->order, &ret->verdict, ret_ages);
	return 0;
}

static bool is_leak(enum verdict verdict)
{
	return verdict == VERDICT_GROWTH || verdict == VERDICT_OVERDUE;
}

/* True if the blocks are so few that others, judged together with them, may know better. */
static bool is_weak(const struct site_verdict *verdict)
{
	return verdict->verdict == VERDICT_UNCLEAR ||
	       (is_leak(verdict->verdict)
			? verdict->suspect_blocks
			: verdict->held_blocks + verdict->site->frees) < WEAK_BLOCKS;
}

/* The sites take the verdict of all blocks together, each block by its age. */
static void adopt(struct finder *finder, const struct found *found, const struct judged_ages *ages)
{
	for (size_t i = found->bag.first; i != NONE; i = finder->members[i].next) {
		struct site_verdict *site = finder->members[i].site;

		if (!site || (is_leak(site->verdict) && is_leak(found->verdict.verdict)))
			continue;
		site->verdict = found->verdict.verdict;
		site->has_rate = false;
		site->suspect_blocks = site->suspect_bytes = 0;
		for (size_t k = 0; k < site->held_blocks; k++) {
			uint32_t index = finder->verdicts->order[site->first + k];
			const struct heap_block *block = &finder->input->held[index];
			bool is_suspect =
				(double)judge_age_ns(finder->judge, block) >= ages->suspect_ns;

			finder->verdicts->blocks[index].verdict =
				(uint8_t)(is_suspect ? site->verdict : VERDICT_NOT_YET);
			site->suspect_blocks += is_suspect;
			site->suspect_bytes += is_suspect ? block->size_bytes : 0;
		}
	}
}

/* What a bag must be to become a cause. */
enum wanted { LEAK, NO_LEAK };

/*
 * Judges the bag together, and makes it a cause if it is what is wanted. Returns whether it is.
 * @bag is only judged if @is_trial.
 */
static bool become_cause(struct finder *finder, const struct bag *bag, enum wanted wanted,
			 bool is_trial)
{
	struct found *found = &finder->found[finder->nr_found];
	struct judged_ages ages;
	bool is_wanted;

	if (finder->err)
		return false;
	finder->err = judge_bag(finder, bag, found, &ages);
	if (finder->err)
		return false;
	is_wanted =
		found->verdict.held_blocks >= MIN_BLOCKS &&
		(wanted == LEAK ? is_leak(found->verdict.verdict)
				: !is_leak(found->verdict.verdict) && !is_weak(&found->verdict));
	if (!is_wanted || is_trial) {
		site_sum_deinit(&found->sum);
		return is_wanted;
	}
	adopt(finder, found, &ages);
	finder->nr_found++;
	return true;
}

static void become_single(struct finder *finder, size_t index)
{
	struct found *found = &finder->found[finder->nr_found];

	if (!finder->members[index].site)
		return;
	*found = (struct found){.bag = empty_bag(), .verdict = *finder->members[index].site};
	put(finder, &found->bag, index);
	finder->nr_found++;
}

/* --- the tree of calls --- */

/* Members with one more function in common: those of one callee. */
struct callee {
	size_t begin, end;
	double weight;
	bool is_heavy, is_weak, is_leak;
	bool is_done; /* has a cause */
};

struct callees {
	struct callee *list;
	size_t nr;
};

static int find_callees(const struct finder *finder, size_t begin, size_t end, struct callees *ret)
{
	const struct member *members = finder->members;
	const double *before = finder->weight_before;
	size_t depth = nr_shared(&members[begin], &members[end - 1]);

	*ret = (struct callees){.list = calloc(end - begin, sizeof(*ret->list))};
	if (!ret->list)
		return -ENOMEM;
	for (size_t next, i = begin; i < end; i = next) {
		for (next = i + 1; next < end && nr_shared(&members[i], &members[next]) > depth;)
			next++;
		ret->list[ret->nr++] = (struct callee){
			.begin = i,
			.end = next,
			.weight = before[next] - before[i],
		};
	}
	return 0;
}

/* Judges its members together; one alone has its verdict. */
static int judge_callee(struct finder *finder, struct callee *callee)
{
	struct bag bag = empty_bag();
	struct judged_ages ages;
	struct found found = {0};
	int err = 0;

	callee->is_weak = callee->weight <= 0;
	if (callee->is_weak)
		return 0;
	for (size_t i = callee->begin; i < callee->end; i++)
		put(finder, &bag, i);
	if (callee->end - callee->begin == 1)
		found.verdict = *finder->members[callee->begin].site;
	else
		err = judge_bag(finder, &bag, &found, &ages);
	callee->is_weak = is_weak(&found.verdict);
	callee->is_leak = is_leak(found.verdict.verdict);
	site_sum_deinit(&found.sum);
	return err;
}

/* Which light callees to judge together. */
enum choice {
	WEAK,	      /* each of which says little */
	STRONG_LEAKS, /* each of which leaks */
	WEAK_AND_LEAKS,
	ALL,
};

static bool is_chosen(const struct callee *callee, enum choice choice)
{
	if (callee->is_heavy)
		return false;
	switch (choice) {
	case WEAK:
		return callee->is_weak;
	case STRONG_LEAKS:
		return callee->is_leak && !callee->is_weak;
	case WEAK_AND_LEAKS:
		return callee->is_leak || callee->is_weak;
	case ALL:
		break;
	}
	return true;
}

static struct bag choose(struct finder *finder, const struct callees *callees, enum choice choice)
{
	struct bag bag = empty_bag();

	for (size_t i = 0; i < callees->nr; i++)
		if (is_chosen(&callees->list[i], choice))
			for (size_t k = callees->list[i].begin; k < callees->list[i].end; k++)
				put(finder, &bag, k);
	return bag;
}

/* As many callees of equal weight would be as far apart (the inverse of Simpson's index). */
static double effective_nr(const struct callees *callees, enum choice choice)
{
	double weight = 0, squares = 0;

	for (size_t i = 0; i < callees->nr; i++) {
		if (!is_chosen(&callees->list[i], choice))
			continue;
		weight += callees->list[i].weight;
		squares += callees->list[i].weight * callees->list[i].weight;
	}
	return squares > 0 ? weight * weight / squares : 0;
}

static bool are_many(const struct callees *callees, enum choice choice)
{
	return effective_nr(callees, choice) >= MANY_CALLEES;
}

static bool is_leaking(struct finder *finder, const struct callees *callees, enum choice choice)
{
	struct bag bag = choose(finder, callees, choice);

	return bag.nr > 1 && become_cause(finder, &bag, LEAK, true);
}

/* Makes the chosen callees one cause, if they are what is wanted. */
static bool join(struct finder *finder, struct callees *callees, enum choice choice,
		 enum wanted wanted)
{
	struct bag bag = choose(finder, callees, choice);

	if (bag.nr < 2 || !become_cause(finder, &bag, wanted, false))
		return false;
	for (size_t i = 0; i < callees->nr; i++)
		callees->list[i].is_done |= is_chosen(&callees->list[i], choice);
	return true;
}

static void set_heavy_aside(struct callees *callees)
{
	double weight = 0;

	for (size_t i = 0; i < callees->nr; i++)
		weight += callees->list[i].weight;
	for (size_t i = 0; i < callees->nr; i++)
		callees->list[i].is_heavy = callees->list[i].weight >= HEAVY_SHARE * weight;
}

/* Judges light callees together, where they are many and alike. */
static void join_light(struct finder *finder, struct callees *callees)
{
	double all, leaks;
	struct bag bag;

	if (!are_many(callees, ALL)) {
		/* Perhaps those are that remain when each heavy one is left to itself. */
		set_heavy_aside(callees);
		if (!are_many(callees, ALL))
			return;
	}
	for (size_t i = 0; i < callees->nr && !finder->err; i++)
		if (!callees->list[i].is_heavy)
			finder->err = judge_callee(finder, &callees->list[i]);
	if (finder->err)
		return;
	if (are_many(callees, STRONG_LEAKS) && join(finder, callees, WEAK_AND_LEAKS, LEAK))
		return;
	if (are_many(callees, WEAK_AND_LEAKS) && is_leaking(finder, callees, WEAK) &&
	    join(finder, callees, WEAK_AND_LEAKS, LEAK))
		return;
	bag = choose(finder, callees, ALL);
	all = bag.weight;
	bag = choose(finder, callees, STRONG_LEAKS);
	leaks = bag.weight;
	if (leaks <= CONTRADICTION * all)
		join(finder, callees, ALL, NO_LEAK);
}

/*
 * Joins the causes found since @before, if nearly all that the members [@begin, @end) hold leaks,
 * most of it by many stacks: none of the causes says more than their common caller.
 */
static void join_leaks(struct finder *finder, size_t begin, size_t end, size_t before)
{
	double all = finder->weight_before[end] - finder->weight_before[begin];
	double leaks = 0, weak = 0, spread = 0, most = 0;
	struct found *founds = finder->found;
	struct bag bag = empty_bag();
	size_t nr = finder->nr_found;

	for (size_t i = before; i < nr; i++) {
		const struct found *found = &founds[i];
		bool is_spread = found->bag.nr >= MANY_CALLEES;

		if (!is_leak(found->verdict.verdict)) {
			weak += is_weak(&found->verdict) ? found->bag.weight : 0;
			continue;
		}
		if (!is_spread && found->bag.weight >= HEAVY_SHARE * all)
			return;
		leaks += found->bag.weight;
		spread += is_spread ? found->bag.weight : 0;
		most = fmax(most, found->bag.weight);
	}
	if (nr - before < 2 || most > leaks / 2 || spread < leaks / 2 ||
	    leaks < (1 - CONTRADICTION) * (all - weak))
		return;
	for (size_t i = begin; i < end; i++)
		put(finder, &bag, i);
	become_cause(finder, &bag, LEAK, false);
	if (finder->nr_found == nr)
		return;
	for (size_t i = before; i < nr; i++)
		site_sum_deinit(&founds[i].sum);
	founds[before] = founds[nr];
	finder->nr_found = before + 1;
}

/*
 * Finds the causes in the tree of calls whose leaves are the members [@begin, @end). They are
 * sorted by path, so those with equal beginnings follow each other.
 */
static void explore(struct finder *finder, size_t begin, size_t end)
{
	size_t before = finder->nr_found;
	struct callees callees;

	if (finder->err || finder->weight_before[end] <= finder->weight_before[begin])
		return;
	if (end - begin == 1) {
		become_single(finder, begin);
		return;
	}
	finder->err = find_callees(finder, begin, end, &callees);
	if (!finder->err)
		join_light(finder, &callees);
	for (size_t i = 0; i < callees.nr && !finder->err; i++)
		if (!callees.list[i].is_done)
			explore(finder, callees.list[i].begin, callees.list[i].end);
	if (!finder->err)
		join_leaks(finder, begin, end, before);
	free(callees.list);
}

/* --- sites that always allocate together --- */

/* The allocation times of the suspect blocks of a cause. */
struct times {
	struct found *found;
	uint64_t *ns;
	size_t nr;
};

static int compare_weights(const void *a, const void *b)
{
	const struct found *x = ((const struct times *)a)->found;
	const struct found *y = ((const struct times *)b)->found;

	return (x->bag.weight < y->bag.weight) - (x->bag.weight > y->bag.weight);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void collect_times(const struct finder *finder, struct times *times, uint64_t *ns)
{
	const struct verdicts *verdicts = finder->verdicts;

	times->ns = ns;
	for (size_t i = times->found->bag.first; i != NONE; i = finder->members[i].next) {
		const struct site_verdict *site = finder->members[i].site;

		for (size_t k = 0; site && k < site->held_blocks; k++) {
			uint32_t index = verdicts->order[site->first + k];

			if (verdicts->blocks[index].verdict != VERDICT_NOT_YET)
				ns[times->nr++] = finder->input->held[index].allocated.time_ns;
		}
	}
	qsort(ns, times->nr, sizeof(*ns), compare_times);
}

/* The greatest distance between the two empirical distributions (Kolmogorov and Smirnov). */
static double distance(const struct times *a, const struct times *b)
{
	double most = 0;
	size_t i = 0, k = 0;

	while (i < a->nr && k < b->nr) {
		uint64_t now = a->ns[i] < b->ns[k] ? a->ns[i] : b->ns[k];

		while (i < a->nr && a->ns[i] == now)
			i++;
		while (k < b->nr && b->ns[k] == now)
			k++;
		most = fmax(most, fabs((double)i / (double)a->nr - (double)k / (double)b->nr));
	}
	return most;
}

/* True if the two come together: one of the one to a fixed number of the other, at the same times.
 */
static bool come_together(const struct times *a, const struct times *b)
{
	double more = (double)(a->nr > b->nr ? a->nr : b->nr),
	       fewer = (double)(a->nr + b->nr) - more;
	double ratio = round(more / fewer);

	return ratio <= TOGETHER_RATIO && fabs(more - ratio * fewer) <= fmax(2, 0.01 * more) &&
	       distance(a, b) * sqrt(more * fewer / (more + fewer)) <= TOGETHER_KS;
}

/* Joins the causes that come together with @times[0] and have a caller in common with it. */
static void join_with_first(struct finder *finder, const struct times *times, size_t nr)
{
	struct found *first = times[0].found, joined;
	struct bag bag = first->bag;
	struct judged_ages ages;

	for (size_t i = 1; i < nr; i++) {
		struct found *other = times[i].found;

		if (other->is_dropped ||
		    !nr_shared(&finder->members[first->bag.lowest],
			       &finder->members[other->bag.lowest]) ||
		    !come_together(&times[0], &times[i]))
			continue;
		pour(finder, &bag, &other->bag);
		other->is_dropped = true;
		site_sum_deinit(&other->sum);
		other->sum = (struct site){0};
	}
	if (bag.nr == first->bag.nr || finder->err)
		return;
	finder->err = judge_bag(finder, &bag, &joined, &ages);
	site_sum_deinit(&first->sum);
	*first = joined;
}

static void join_those_together(struct finder *finder)
{
	_cleanup_free_ struct times *times = calloc(finder->nr_found + 1, sizeof(*times));
	_cleanup_free_ uint64_t *ns = calloc(finder->input->nr_held + 1, sizeof(*ns));
	size_t nr = 0, nr_ns = 0;

	if (!times || !ns) {
		finder->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < finder->nr_found; i++)
		if (is_leak(finder->found[i].verdict.verdict) &&
		    finder->found[i].verdict.suspect_blocks >= TOGETHER_BLOCKS)
			times[nr++].found = &finder->found[i];
	qsort(times, nr, sizeof(*times), compare_weights);
	if (nr > TOGETHER_CAUSES)
		nr = TOGETHER_CAUSES;
	for (size_t i = 0; i < nr; i++) {
		collect_times(finder, &times[i], ns + nr_ns);
		nr_ns += times[i].nr;
	}
	for (size_t i = 0; i < nr && !finder->err; i++)
		if (!times[i].found->is_dropped)
			join_with_first(finder, &times[i], nr - i);
}

/* --- members --- */

/*
 * Folds recursion: where a function is entered again, the path goes on from its first entry.
 * Returns the number of functions.
 */
static uint32_t fold_path(const uint64_t *functions, size_t nr, uint64_t *path, uint32_t *frames)
{
	uint32_t nr_folded = 0;

	for (size_t i = 0; i < nr; i++) {
		uint32_t at = 0;

		while (at < nr_folded && path[at] != functions[i])
			at++;
		if (at == MAX_FUNCTIONS)
			break;
		if (at == nr_folded) {
			path[at] = functions[i];
			frames[at] = (uint32_t)i + 1;
		}
		nr_folded = at + 1;
	}
	return nr_folded;
}

static void add_member(struct finder *finder, const struct site *counts, struct site_verdict *site)
{
	uint64_t functions[MAX_FRAMES];
	size_t at = finder->nr_members * MAX_FUNCTIONS, nr;
	struct member *member = &finder->members[finder->nr_members];

	*member = (struct member){
		.counts = counts,
		.site = site,
		.path = finder->functions + at,
		.frames = finder->frames + at,
		.weight = site ? (double)site->held_bytes + (double)site->held_blocks : 0,
	};
	finder->err = finder->input->functions_of(finder->input->stacks, counts->stack_id,
						  functions, MAX_FRAMES, &nr);
	if (finder->err)
		return;
	member->nr = fold_path(functions, nr, finder->functions + at, finder->frames + at);
	finder->nr_members++;
}

/* True if the site's blocks are memory that is not left behind. */
static bool may_join(const struct finder *finder, const struct site_verdict *site)
{
	const struct heap_block *block = &finder->input->held[finder->verdicts->order[site->first]];

	return site->verdict != VERDICT_AT_EXIT && !resource_call_of(block->allocated.schema);
}

static void add_members(struct finder *finder)
{
	struct verdicts *verdicts = finder->verdicts;
	size_t nr_all;
	const struct site *all = site_stats_list(finder->input->sites, &nr_all);

	for (size_t i = 0; i < verdicts->nr_sites && !finder->err; i++)
		if (may_join(finder, &verdicts->sites[i]))
			add_member(finder, verdicts->sites[i].site, &verdicts->sites[i]);
	for (size_t i = 0; i < nr_all && !finder->err; i++)
		if (!site_held_blocks(&all[i]) && all[i].frees)
			add_member(finder, &all[i], NULL);
}

static int compare_paths(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	size_t nr = nr_shared(x, y);

	if (nr < x->nr && nr < y->nr)
		return x->path[nr] < y->path[nr] ? -1 : 1;
	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	return (x->counts->stack_id > y->counts->stack_id) -
	       (x->counts->stack_id < y->counts->stack_id);
}

static int reserve(struct finder *finder)
{
	size_t nr_all, nr;

	site_stats_list(finder->input->sites, &nr_all);
	nr = nr_all + finder->verdicts->nr_sites + 1;
	finder->functions = calloc(nr, MAX_FUNCTIONS * sizeof(*finder->functions));
	finder->frames = calloc(nr, MAX_FUNCTIONS * sizeof(*finder->frames));
	finder->members = calloc(nr, sizeof(*finder->members));
	finder->weight_before = calloc(nr, sizeof(*finder->weight_before));
	finder->found = calloc(finder->verdicts->nr_sites + 1, sizeof(*finder->found));
	finder->order = calloc(finder->input->nr_held + 1, sizeof(*finder->order));
	return finder->functions && finder->frames && finder->members && finder->weight_before &&
			       finder->found && finder->order
		       ? 0
		       : -ENOMEM;
}

static void release(struct finder *finder)
{
	free(finder->functions);
	free(finder->frames);
	free(finder->members);
	free(finder->weight_before);
	free(finder->found);
	free(finder->order);
}

static void find(struct finder *finder)
{
	add_members(finder);
	if (finder->err || finder->nr_members < 2)
		return;
	qsort(finder->members, finder->nr_members, sizeof(*finder->members), compare_paths);
	for (size_t i = 0; i < finder->nr_members; i++)
		finder->weight_before[i + 1] = finder->weight_before[i] + finder->members[i].weight;
	explore(finder, 0, finder->nr_members);
	join_those_together(finder);
}

/* --- results --- */

static void add_cause(struct finder *finder, struct found *found)
{
	struct verdicts *verdicts = finder->verdicts;
	size_t nr = nr_shared(&finder->members[found->bag.lowest],
			      &finder->members[found->bag.highest]);

	for (size_t i = found->bag.first; i != NONE; i = finder->members[i].next) {
		struct site_verdict *site = finder->members[i].site;

		if (!site)
			continue;
		site->cause = (uint32_t)verdicts->nr_causes;
		if (found->bag.nr > 1 && nr > 0)
			site->nr_shared = finder->members[i].frames[nr - 1];
	}
	verdicts->causes[verdicts->nr_causes++] = (struct cause){
		.verdict = found->verdict,
		.sum = found->sum,
		.nr = found->bag.nr,
	};
}

int causes_find(struct verdicts *verdicts, const struct verdict_input *input, struct judge *judge)
{
	struct finder finder = {.verdicts = verdicts, .input = input, .judge = judge};

	for (size_t i = 0; i < verdicts->nr_sites; i++)
		verdicts->sites[i].cause = UINT32_MAX;
	if (input->functions_of && verdicts->nr_sites > 1) {
		finder.err = reserve(&finder);
		if (!finder.err)
			find(&finder);
	}
	for (size_t i = 0; i < finder.nr_found; i++)
		if (!finder.found[i].is_dropped)
			add_cause(&finder, &finder.found[i]);
	for (size_t i = 0; i < verdicts->nr_sites; i++) {
		if (verdicts->sites[i].cause != UINT32_MAX)
			continue;
		verdicts->sites[i].cause = (uint32_t)verdicts->nr_causes;
		verdicts->causes[verdicts->nr_causes++] = (struct cause){
			.verdict = verdicts->sites[i],
			.nr = 1,
		};
	}
	release(&finder);
	return finder.err;
}
