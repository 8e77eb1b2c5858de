/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_callee.h"

#include "common/scope.h"
#include "parser/causes/cause_times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What a function, and each of its callers, may do besides the leak. */
#define CONTRADICTION 0.1
#define MIN_WAYS      2		/* in which the function allocates: a mere helper has one */
#define MANY_WAYS     5		/* so many are more than a helper has */
#define MIN_LAG_RATIO 3		/* of distances, with a lag to that without */
#define MAX_CLUMP_GAP 0.02	/* within a clump, as a share of the mean distance (growth.c) */
#define MAX_PASSAGES  (1 << 20) /* more would take too long */
#define MAX_TRIED     64	/* functions, of which times are compared */
#define NO_CAUSE      UINT32_MAX

/* A member's path passes a function. */
struct passage {
	uint32_t member;
	uint32_t at; /* path[at] is the function */
};

/* The passages of one function that have the same callers up to main. They follow each other. */
struct context {
	size_t begin, end;
	double weight;	      /* of leaking members */
	double all_weight;    /* and of others */
	uint64_t allocations; /* of all members */
};

struct candidate {
	size_t begin, end;    /* passages of the function */
	double weight;	      /* of leaking members in leaking contexts */
	uint64_t allocations; /* of all members */
	uint64_t function;
	uint32_t nr_inside; /* functions that the heaviest of these members has further inside */
};

struct search {
	struct cause_finder *finder;
	struct passage *passages; /* by function, then by member */
	size_t *first;		  /* [f], [f + 1]: the passages of the function f */
	size_t nr_functions;
	uint32_t *cause_of; /* of each member: the index in finder->found, if it leaks */
	struct candidate *candidates;
	size_t nr_candidates;
};

/* --- passages --- */

static int find_passages(struct search *search)
{
	const struct cause_finder *finder = search->finder;
	size_t nr = 0;

	for (size_t i = 0; i < finder->nr_members; i++) {
		nr += finder->members[i].nr;
		for (size_t k = 0; k < finder->members[i].nr; k++)
			if (finder->members[i].path[k] >= search->nr_functions)
				search->nr_functions = finder->members[i].path[k] + 1;
	}
	if (nr > MAX_PASSAGES)
		return -E2BIG;
	search->passages = calloc(nr + 1, sizeof(*search->passages));
	search->first = calloc(search->nr_functions + 2, sizeof(*search->first));
	search->candidates = calloc(search->nr_functions + 1, sizeof(*search->candidates));
	search->cause_of = calloc(finder->nr_members + 1, sizeof(*search->cause_of));
	if (!search->passages || !search->first || !search->candidates || !search->cause_of)
		return -ENOMEM;
	/* Counting sort: first[f + 1] is where the next passage of f goes. */
	for (size_t i = 0; i < finder->nr_members; i++)
		for (size_t k = 0; k < finder->members[i].nr; k++)
			search->first[finder->members[i].path[k] + 2]++;
	for (size_t f = 2; f < search->nr_functions + 2; f++)
		search->first[f] += search->first[f - 1];
	for (size_t i = 0; i < finder->nr_members; i++)
		for (size_t k = 0; k < finder->members[i].nr; k++)
			search->passages[search->first[finder->members[i].path[k] + 1]++] =
				(struct passage){(uint32_t)i, (uint32_t)k};
	return 0;
}

static const struct cause_member *member_of(const struct search *search, size_t passage)
{
	return &search->finder->members[search->passages[passage].member];
}

static uint32_t cause_of(const struct search *search, size_t passage)
{
	return search->cause_of[search->passages[passage].member];
}

static bool is_same_context(const struct search *search, size_t a, size_t b)
{
	return search->passages[a].at == search->passages[b].at &&
	       cause_nr_shared(member_of(search, a), member_of(search, b)) > search->passages[a].at;
}

/* The context that begins at @begin. */
static struct context next_context(const struct search *search, size_t begin, size_t end)
{
	struct context context = {.begin = begin, .end = begin};

	do {
		const struct cause_member *member = member_of(search, context.end);

		context.all_weight += member->weight;
		context.allocations += member->counts->allocations;
		if (cause_of(search, context.end) != NO_CAUSE)
			context.weight += member->weight;
		context.end++;
	} while (context.end < end && is_same_context(search, begin, context.end));
	return context;
}

/* True if nearly everything that the function holds for this caller leaks. */
static bool is_leaking(const struct context *context)
{
	return context->weight > 0 && context->weight >= (1 - CONTRADICTION) * context->all_weight;
}

/* --- contexts that allocate together --- */

/* The passages that go on alike inside of the function, of one context. They follow each other. */
struct way {
	size_t begin, end;
	uint64_t suspects;
};

static int compare_insides(const struct search *search, size_t a, size_t b)
{
	const struct cause_member *x = member_of(search, a), *y = member_of(search, b);
	uint32_t i = search->passages[a].at + 1, k = search->passages[b].at + 1;

	while (i < x->nr && k < y->nr && x->path[i] == y->path[k])
		i++, k++;
	if (i < x->nr && k < y->nr)
		return x->path[i] < y->path[k] ? -1 : 1;
	return (i < x->nr) - (k < y->nr);
}

static struct way next_way(const struct search *search, size_t begin, size_t end)
{
	struct way way = {.begin = begin, .end = begin};

	do {
		if (cause_of(search, way.end) != NO_CAUSE)
			way.suspects += member_of(search, way.end)->site->suspect_blocks;
		way.end++;
	} while (way.end < end && !compare_insides(search, begin, way.end));
	return way;
}

static uint64_t suspects_of(const struct search *search, const struct context *context)
{
	uint64_t nr = 0;

	for (size_t i = context->begin; i < context->end; i++)
		if (cause_of(search, i) != NO_CAUSE)
			nr += member_of(search, i)->site->suspect_blocks;
	return nr;
}

/* Keeps the first time of each clump, which is one call, or several at once. */
static void keep_clumps(struct cause_times *times)
{
	double gap_ns;
	size_t nr = 0;

	if (!times->nr)
		return;
	gap_ns = MAX_CLUMP_GAP * (double)(times->ns[times->nr - 1] - times->ns[0]) /
		 (double)times->nr;
	for (size_t i = 0, previous = 0; i < times->nr; previous = i++)
		if (!i || (double)(times->ns[i] - times->ns[previous]) > gap_ns)
			times->ns[nr++] = times->ns[i];
	times->nr = nr;
}

static void collect_times(const struct search *search, const struct way *way,
			  struct cause_times *times)
{
	for (size_t i = way->begin; i < way->end; i++)
		if (cause_of(search, i) != NO_CAUSE)
			cause_times_add(search->finder, times, search->passages[i].member);
	cause_times_sort(times);
}

/* The mean distance of @a to @b as it would be, had @b been some time earlier or later. */
static double distance_with_lags(const struct cause_times *a, const struct cause_times *b,
				 struct cause_times *lagged)
{
	uint64_t begin = a->ns[0] < b->ns[0] ? a->ns[0] : b->ns[0];
	uint64_t a_end = a->ns[a->nr - 1], b_end = b->ns[b->nr - 1];
	uint64_t length = (a_end > b_end ? a_end : b_end) - begin + 1;
	double sum = 0;

	for (unsigned int quarter = 1; quarter < 4; quarter++) {
		uint64_t lag = length / 4 * quarter;
		size_t split = 0;

		/* What would come after the end comes at the beginning. */
		while (split < b->nr && b->ns[split] - begin + lag < length)
			split++;
		for (size_t i = 0; i < b->nr; i++) {
			size_t from = (i + split) % b->nr;

			lagged->ns[i] = b->ns[from] + lag - (from >= split ? length : 0);
		}
		lagged->nr = b->nr;
		sum += cause_times_distance(a, lagged);
	}
	return sum / 3;
}

/*
 * True if each block of the one has its blocks of the other. With @is_helper, that must not be so
 * with a lag, too: then both may just come at steady rates.
 */
static bool is_in_step(const struct search *search, const struct way *a, const struct way *b,
		       bool is_helper)
{
	struct cause_times times_a = {0}, times_b = {0}, lagged = {0};
	_cleanup_free_ uint64_t *ns = calloc(a->suspects + 2 * b->suspects + 1, sizeof(*ns));

	if (!ns) {
		search->finder->err = -ENOMEM;
		return false;
	}
	times_a.ns = ns;
	times_b.ns = ns + a->suspects;
	lagged.ns = times_b.ns + b->suspects;
	collect_times(search, a, &times_a);
	collect_times(search, b, &times_b);
	if (times_a.nr < CAUSE_TIMES_MIN || times_b.nr < CAUSE_TIMES_MIN ||
	    !cause_times_are_multiples(times_a.nr, times_b.nr))
		return false;
	keep_clumps(&times_a);
	keep_clumps(&times_b);
	return times_a.nr >= CAUSE_TIMES_MIN && times_b.nr >= CAUSE_TIMES_MIN &&
	       cause_times_are_alike(&times_a, &times_b) &&
	       (!is_helper || distance_with_lags(&times_a, &times_b, &lagged) >=
				      MIN_LAG_RATIO * cause_times_distance(&times_a, &times_b));
}

/*
 * True if the function allocates the same for both callers, and each time for the one also for the
 * other. The way with the fewest blocks has about one for each call, so its times are compared.
 */
static bool come_together(const struct search *search, const struct context *a,
			  const struct context *b)
{
	double nr_a = (double)suspects_of(search, a), nr_b = (double)suspects_of(search, b);
	struct way rarest[2] = {{.suspects = UINT64_MAX}};
	double alike = 0;
	size_t nr_ways = 0, i = a->begin, k = b->begin;

	while (i < a->end && k < b->end) {
		int order = compare_insides(search, i, k);
		struct way way_a = next_way(search, i, a->end);
		struct way way_b = next_way(search, k, b->end);

		i = order <= 0 ? way_a.end : i;
		k = order >= 0 ? way_b.end : k;
		if (order || !way_a.suspects || !way_b.suspects)
			continue;
		nr_ways++;
		alike += fmin((double)way_a.suspects / nr_a, (double)way_b.suspects / nr_b);
		if (way_a.suspects < rarest[0].suspects && way_a.suspects >= CAUSE_TIMES_MIN &&
		    way_b.suspects >= CAUSE_TIMES_MIN) {
			rarest[0] = way_a;
			rarest[1] = way_b;
		}
	}
	return nr_ways >= MIN_WAYS && alike >= 1 - CONTRADICTION &&
	       rarest[0].suspects != UINT64_MAX &&
	       is_in_step(search, &rarest[0], &rarest[1], nr_ways < MANY_WAYS);
}

/* --- functions that leak whoever calls them --- */

static void find_causes(struct search *search)
{
	const struct cause_finder *finder = search->finder;

	for (size_t i = 0; i < finder->nr_members; i++)
		search->cause_of[i] = NO_CAUSE;
	for (size_t i = 0; i < finder->nr_found; i++) {
		const struct cause_found *found = &finder->found[i];

		if (found->is_dropped || found->has_callee ||
		    !cause_is_leak(found->verdict.verdict))
			continue;
		for (size_t k = found->bag.first; k != CAUSE_NO_MEMBER; k = finder->members[k].next)
			if (finder->members[k].site)
				search->cause_of[k] = (uint32_t)i;
	}
}

/* Adds the function if its leaking contexts are several, and make nearly all of its allocations. */
static void consider(struct search *search, uint64_t function)
{
	struct candidate candidate = {
		.begin = search->first[function],
		.end = search->first[function + 1],
		.function = function,
	};
	uint64_t leaking = 0;
	size_t nr_contexts = 0;
	uint32_t cause = NO_CAUSE;
	bool has_causes = false;
	double most = 0;
	struct context context;

	for (size_t i = candidate.begin; i < candidate.end; i = context.end) {
		context = next_context(search, i, candidate.end);
		candidate.allocations += context.allocations;
		if (!is_leaking(&context))
			continue;
		nr_contexts++;
		leaking += context.allocations;
		candidate.weight += context.weight;
		for (size_t k = context.begin; k < context.end; k++) {
			uint32_t of = cause_of(search, k);
			const struct cause_member *member = member_of(search, k);

			if (of == NO_CAUSE)
				continue;
			has_causes |= cause != NO_CAUSE && cause != of;
			cause = of;
			if (member->weight > most)
				candidate.nr_inside = member->nr - search->passages[k].at;
			most = fmax(most, member->weight);
		}
	}
	if (nr_contexts >= 2 && has_causes &&
	    (double)leaking >= (1 - CONTRADICTION) * (double)candidate.allocations)
		search->candidates[search->nr_candidates++] = candidate;
}

/* Those that explain most come first, of equal ones the innermost. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->nr_inside > y->nr_inside) - (x->nr_inside < y->nr_inside);
}

static struct context heaviest_context(const struct search *search,
				       const struct candidate *candidate)
{
	struct context heaviest = {0}, context;

	for (size_t i = candidate->begin; i < candidate->end; i = context.end) {
		context = next_context(search, i, candidate->end);
		if (is_leaking(&context) && context.weight > heaviest.weight)
			heaviest = context;
	}
	return heaviest;
}

/*
 * Sets @moves[i] for each leaking passage i, counted from the first, whose context allocates
 * together with the heaviest one. Returns their weight, or 0 if they are not nearly all.
 */
static double choose_contexts(const struct search *search, const struct candidate *candidate,
			      bool *moves)
{
	struct context heaviest = heaviest_context(search, candidate), context;
	uint64_t others = 0;
	size_t nr = 0;
	double weight = 0;

	for (size_t i = candidate->begin; i < candidate->end; i = context.end) {
		bool joins;

		context = next_context(search, i, candidate->end);
		joins = i == heaviest.begin ||
			(is_leaking(&context) && come_together(search, &heaviest, &context));
		for (size_t k = context.begin; k < context.end; k++)
			moves[k - candidate->begin] = joins && cause_of(search, k) != NO_CAUSE;
		weight += joins ? context.weight : 0;
		nr += joins;
		others += joins ? 0 : context.allocations;
		if ((double)others > CONTRADICTION * (double)candidate->allocations)
			return 0;
	}
	return nr >= 2 ? weight : 0;
}

/* --- joining --- */

/*
 * Makes the passages that move a cause, and takes them from their causes. Members without blocks
 * stay where they are. Returns false if all together do not leak.
 */
static bool join(struct search *search, const struct candidate *candidate, const bool *moves)
{
	struct cause_finder *finder = search->finder;
	size_t nr = finder->nr_found;
	_cleanup_free_ bool *is_touched = calloc(nr + 1, sizeof(*is_touched));
	_cleanup_free_ size_t *next = calloc(finder->nr_members + 1, sizeof(*next));
	struct cause_bag bag = cause_bag_empty();

	if (!is_touched || !next) {
		finder->err = -ENOMEM;
		return false;
	}
	for (size_t i = 0; i < finder->nr_members; i++)
		next[i] = finder->members[i].next;
	for (size_t i = candidate->begin; i < candidate->end; i++) {
		if (!moves[i - candidate->begin])
			continue;
		is_touched[cause_of(search, i)] = true;
		search->cause_of[search->passages[i].member] = NO_CAUSE;
		cause_bag_put(finder, &bag, search->passages[i].member);
	}
	if (!cause_become(finder, &bag, CAUSE_THAT_LEAKS, false)) {
		for (size_t i = 0; i < finder->nr_members; i++)
			finder->members[i].next = next[i];
		return false;
	}
	finder->found[nr].has_callee = true;
	finder->found[nr].callee = candidate->function;
	for (size_t i = 0; i < nr && !finder->err; i++) {
		struct cause_found *found = &finder->found[i];
		struct cause_bag rest = cause_bag_empty();

		if (!is_touched[i])
			continue;
		for (size_t k = found->bag.first; k != CAUSE_NO_MEMBER; k = next[k])
			if (!finder->members[k].site || search->cause_of[k] != NO_CAUSE)
				cause_bag_put(finder, &rest, k);
		site_sum_deinit(&found->sum);
		found->sum = (struct site){0};
		found->is_dropped = !rest.nr;
		if (rest.nr)
			cause_become_part(finder, &rest, found);
	}
	return true;
}

/* Joins what leaks inside of the function that explains most. Returns false if there is none. */
static bool join_best(struct search *search)
{
	struct candidate best = {0};
	_cleanup_free_ bool *moves = NULL, *best_moves = NULL;
	size_t most = 0;

	find_causes(search);
	search->nr_candidates = 0;
	for (uint64_t f = 0; f < search->nr_functions; f++)
		consider(search, f);
	qsort(search->candidates, search->nr_candidates, sizeof(*search->candidates),
	      compare_candidates);
	for (size_t i = 0; i < search->nr_candidates; i++)
		if (search->candidates[i].end - search->candidates[i].begin > most)
			most = search->candidates[i].end - search->candidates[i].begin;
	moves = calloc(most + 1, sizeof(*moves));
	best_moves = calloc(most + 1, sizeof(*best_moves));
	if (!moves || !best_moves) {
		search->finder->err = -ENOMEM;
		return false;
	}
	for (size_t i = 0; i < search->nr_candidates && i < MAX_TRIED; i++) {
		struct candidate *candidate = &search->candidates[i];

		if (best.weight > 0 && (candidate->weight < (1 - CONTRADICTION) * best.weight ||
					candidate->nr_inside >= best.nr_inside))
			continue;
		candidate->weight = choose_contexts(search, candidate, moves);
		if (candidate->weight <= 0 || candidate->weight < (1 - CONTRADICTION) * best.weight)
			continue;
		/* The innermost function of about the same weight is the one that leaks. */
		candidate->weight = fmax(candidate->weight, best.weight);
		best = *candidate;
		for (size_t k = 0; k < best.end - best.begin; k++)
			best_moves[k] = moves[k];
	}
	return best.weight > 0 && !search->finder->err && join(search, &best, best_moves);
}

void cause_callee_join(struct cause_finder *finder)
{
	struct search search = {.finder = finder};
	size_t nr_leaks = 0;
	int err;

	for (size_t i = 0; i < finder->nr_found && !finder->err; i++)
		nr_leaks += !finder->found[i].is_dropped &&
			    cause_is_leak(finder->found[i].verdict.verdict);
	if (nr_leaks < 2)
		return;
	err = find_passages(&search);
	if (err == -ENOMEM)
		finder->err = err;
	for (size_t i = 0; !err && i < CAUSE_MAX_CALLEES && join_best(&search); i++)
		;
	free(search.passages);
	free(search.first);
	free(search.candidates);
	free(search.cause_of);
}
