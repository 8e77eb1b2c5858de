/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/budget.h"

#define MAX_WINDOW_NS 1000000000ULL /* of a busy program */
#define MAX_DOUBLINGS 5		    /* of the shortest window */
#define NEW_NS	      1000000000ULL /* most children of some programs live for a moment */
#define MARK_NS	      100000000ULL
#define OPEN_ASK_NS   50000000ULL
#define MIN_ASK_NS    1000000ULL
/* Between windows. Asking costs a part of the budget, too. */
#define SHUT_ASK_NS	 400000000ULL
#define MIN_SHUT_ASK_NS	 20000000ULL
#define MAX_SHUT_ASK_NS	 5000000000ULL
#define MAX_ASKED_PART	 0.25 /* of what the budget allows */
#define SAVED_NS	 1e9  /* the credit of so much time can be saved */
#define MIN_ALLOWANCE_NS 2e6
#define LEARN		 0.3 /* the weight of the latest window */
/*
 * A window is slow where hits take more than the first part of the program's CPU time, and all of
 * its time counts where they take the second part.
 */
#define SLOW_PART 0.125
#define SLOW_ALL  0.5
/* A slow window lasts at least so many times as long as placing its probes. */
#define SLOW_PLACINGS 3
#define MAX_REST_NS   1.2e11
#define REST_ASK_NS   1000000000ULL

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* From 0 to 1: xorshift64* (Vigna 2016). */
static double next_random(struct budget *budget)
{
	budget->random ^= budget->random >> 12;
	budget->random ^= budget->random << 25;
	budget->random ^= budget->random >> 27;
	return (double)(budget->random * 0x2545f4914f6cdd1dULL >> 11) / (double)(1ULL << 53);
}

void budget_init(struct budget *ret, double share, uint64_t seed, const struct budget_meter *now)
{
	*ret = (struct budget){
		.share = share,
		.least_ns = BUDGET_MIN_WINDOW_NS,
		.first = *now,
		.last = *now,
		.credit_ns = share * SAVED_NS,
		.random = seed | 1,
		.length_ns = BUDGET_MIN_WINDOW_NS,
	};
}

/* How long a busy program's window is to last. */
static uint64_t planned_ns(const struct budget *budget)
{
	return budget->length_ns > budget->least_ns ? budget->length_ns : budget->least_ns;
}

static double expected_ns(const struct budget *budget)
{
	return budget->fixed_ns + budget->rate * (double)planned_ns(budget);
}

static void mark(struct budget *budget)
{
	budget->mark_ns = budget->last.now_ns;
	budget->mark_hits_ns = budget->last.hits_ns;
	budget->mark_cost_ns = budget->cost_ns;
	budget->mark_allowed_ns = budget->allowed_ns;
}

/* Looks at the pace of the window that is open. */
static void note_pace(struct budget *budget)
{
	double cost_ns = budget->cost_ns - budget->mark_cost_ns;
	double hits_ns = (double)(budget->last.hits_ns - budget->mark_hits_ns);
	double allowed_ns = budget->allowed_ns - budget->mark_allowed_ns;
	uint64_t ns = budget->last.now_ns - budget->mark_ns;

	if (budget->state != BUDGET_OPEN || ns < BUDGET_MIN_WINDOW_NS)
		return;
	budget->is_busy = cost_ns > allowed_ns;
	budget->is_hit = hits_ns > allowed_ns;
	if (ns < MARK_NS)
		return;
	budget->rate = cost_ns / (double)ns;
	mark(budget);
}

void budget_update(struct budget *budget, const struct budget_meter *now)
{
	const struct budget_meter *last = &budget->last;
	double allowed_ns = budget->share * larger((double)(now->targets_ns - last->targets_ns),
						   (double)(now->thread_ns - last->thread_ns));
	double cost_ns = (double)(now->hits_ns - last->hits_ns) +
			 (double)(now->own_ns - last->own_ns) +
			 (double)(now->helpers_ns - last->helpers_ns);
	double most_ns = larger(budget->share * SAVED_NS, 2 * expected_ns(budget));

	if (budget->state == BUDGET_SHUT) {
		budget->asked.nr++;
		budget->asked.ns += now->now_ns - last->now_ns;
		budget->asked.cost_ns += cost_ns;
		budget->asked.allowed_ns += allowed_ns;
	}
	budget->last = *now;
	budget->allowed_ns += allowed_ns;
	budget->cost_ns += cost_ns;
	budget->credit_ns += allowed_ns - cost_ns;
	if (budget->credit_ns > most_ns)
		budget->credit_ns = most_ns;
	note_pace(budget);
}

static void learn(double *value, double latest, bool is_first)
{
	*value = is_first ? latest : *value + LEARN * (latest - *value);
}

/*
 * Learns from the window that began at budget->began: what it cost while it was open, and to
 * unwind and write what it brought; the rest is what any window costs.
 */
static void learn_from_last(struct budget *budget)
{
	const struct budget_meter *began = &budget->began, *opened = &budget->opened;
	const struct budget_meter *closed = &budget->closed, *last = &budget->last;
	double open_ns = (double)(closed->now_ns - opened->now_ns);
	double open_hits_ns = (double)(closed->hits_ns - opened->hits_ns);
	double own_ns = (double)(last->own_ns - began->own_ns);
	double fixed_ns = (double)(last->hits_ns - began->hits_ns) - open_hits_ns +
			  (double)(last->helpers_ns - began->helpers_ns);
	bool is_first = budget->nr_windows == 1;

	/* The pace of a long window is known, and an earlier one does not count. */
	if (open_ns < (double)MARK_NS)
		learn(&budget->rate, (open_hits_ns + own_ns) / larger(open_ns, 1), is_first);
	learn(&budget->fixed_ns, fixed_ns, is_first);
	budget->length_ns = BUDGET_MIN_WINDOW_NS;
	if (budget->rate * (double)MAX_WINDOW_NS < budget->fixed_ns)
		budget->length_ns = MAX_WINDOW_NS;
	else if (budget->rate * (double)budget->length_ns < budget->fixed_ns)
		budget->length_ns = (uint64_t)(budget->fixed_ns / budget->rate);
}

void budget_begin(struct budget *budget)
{
	budget->began = budget->last;
}

void budget_note_open(struct budget *budget, uint64_t now_ns)
{
	budget->state = BUDGET_OPEN;
	budget->opened = budget->last;
	budget->opened.now_ns = now_ns;
	budget->is_busy = budget->is_hit = true;
	budget->new_since_ns = 0;
	mark(budget);
	budget->mark_ns = now_ns;
}

void budget_note_new(struct budget *budget, bool has_new)
{
	if (!has_new)
		budget->new_since_ns = 0;
	else if (!budget->new_since_ns)
		budget->new_since_ns = budget->last.now_ns;
}

/* A long window closes because the program has become busy: since its last mark, or before. */
static void note_last_pace(struct budget *budget)
{
	double cost_ns = budget->cost_ns - budget->mark_cost_ns;
	uint64_t ns = budget->last.now_ns - budget->mark_ns;

	if (budget->closed.now_ns - budget->opened.now_ns >= MARK_NS && ns >= BUDGET_MIN_WINDOW_NS)
		budget->rate = larger(budget->rate, cost_ns / (double)ns);
}

void budget_note_closing(struct budget *budget, uint64_t closed_ns)
{
	budget->state = BUDGET_CLOSING;
	budget->closed = budget->last;
	budget->closed.now_ns =
		closed_ns > budget->opened.now_ns ? closed_ns : budget->opened.now_ns;
	note_last_pace(budget);
	budget->nr_windows++;
	budget->observed_ns += budget->closed.now_ns - budget->opened.now_ns;
}

/* How much of the time between two meters of a window was slow, from 0 to 1. */
static double slow_part(const struct budget_meter *from, const struct budget_meter *to)
{
	double cpu_ns = (double)(to->targets_ns - from->targets_ns);
	double hits_ns = (double)(to->hits_ns - from->hits_ns);
	double part = cpu_ns > 0 ? (hits_ns / cpu_ns - SLOW_PART) / (SLOW_ALL - SLOW_PART) : 0;

	return part <= 0 ? 0 : part < 1 ? part : 1;
}

/*
 * What lives as long as windows last looks like what stays (docs/verdicts.md, "In flight"). So half
 * of the windows are as short as they may be, a quarter is twice as long, and so on.
 */
static void draw_least(struct budget *budget)
{
	budget->least_ns = BUDGET_MIN_WINDOW_NS;
	for (int i = 0; i < MAX_DOUBLINGS && next_random(budget) < 0.5; i++)
		budget->least_ns *= 2;
}

static double placing_ns(const struct budget *budget)
{
	return (double)(budget->opened.now_ns - budget->began.now_ns);
}

/*
 * How long the latest window has slowed the program down, with the time that its probes took to be
 * placed, and as long to be removed.
 */
static double slow_ns(const struct budget *budget)
{
	double open_ns = (double)(budget->closed.now_ns - budget->opened.now_ns);
	double hits_ns = (double)(budget->closed.hits_ns - budget->opened.hits_ns);

	/* The program may have been idle in most of it. */
	return slow_part(&budget->opened, &budget->closed) *
	       (2 * placing_ns(budget) + (open_ns < 2 * hits_ns ? open_ns : 2 * hits_ns));
}

/*
 * A request that meets a slow window takes several times as long as others. So that the slowest one
 * of a hundred is not such a request, slow windows take an eighth of the share of all time: 0.3 %
 * of it at 2 %, more of it at larger shares, and all of it at 100 %.
 */
static double slow_share(const struct budget *budget)
{
	return budget->share * (1 + 7 * budget->share) / 8;
}

void budget_note_shut(struct budget *budget)
{
	double rest_ns = slow_ns(budget) * larger(1 / slow_share(budget) - 1, 0);

	budget->state = BUDGET_SHUT;
	budget->asked = (struct budget_asked){0};
	learn_from_last(budget);
	draw_least(budget);
	budget->threshold_ns = (0.5 + next_random(budget)) * expected_ns(budget);
	if (rest_ns > MAX_REST_NS)
		rest_ns = MAX_REST_NS;
	budget->rest_until_ns =
		budget->closed.now_ns + (uint64_t)((0.5 + next_random(budget)) * rest_ns);
}

bool budget_wants_open(const struct budget *budget)
{
	return budget->state == BUDGET_SHUT && budget->credit_ns >= budget->threshold_ns &&
	       budget->last.now_ns >= budget->rest_until_ns;
}

bool budget_wants_close(const struct budget *budget)
{
	uint64_t now_ns = budget->last.now_ns;
	uint64_t open_ns = now_ns - budget->opened.now_ns;
	/* A window that goes as planned does not go so far. */
	double most_debt_ns = larger(budget->share * SAVED_NS, budget->fixed_ns);
	double least_credit_ns = open_ns >= planned_ns(budget) ? 0 : -most_debt_ns;
	bool is_dear = budget->is_busy && open_ns >= BUDGET_MIN_WINDOW_NS &&
		       budget->credit_ns < least_credit_ns;
	bool is_slow = budget->is_hit && open_ns >= budget->least_ns &&
		       (double)open_ns >= SLOW_PLACINGS * placing_ns(budget) && budget->share < 1 &&
		       slow_part(&budget->opened, &budget->last) > 0;
	bool is_old = budget->new_since_ns && now_ns >= budget->new_since_ns + NEW_NS &&
		      budget->credit_ns >= expected_ns(budget);

	return budget->state == BUDGET_OPEN && (is_dear || is_slow || is_old);
}

double budget_allowance_ns(const struct budget *budget)
{
	double window_ns = 2 * budget->rate * (double)planned_ns(budget);

	return larger(larger(window_ns, budget->share * SAVED_NS), MIN_ALLOWANCE_NS);
}

/*
 * How long to wait between two questions, so that the answers take a quarter of what the budget
 * allows meanwhile, and leave the rest for the next window: on a slow machine an answer is dear,
 * and where many threads wait for few CPUs, a second allows little. 0: it is not known yet.
 */
static double asked_wait_ns(const struct budget *budget)
{
	const struct budget_asked *asked = &budget->asked;
	double cost_ns = asked->nr ? asked->cost_ns / (double)asked->nr : 0;
	double wait_ns = cost_ns * (double)asked->ns,
	       allowed_ns = MAX_ASKED_PART * asked->allowed_ns;

	if (wait_ns > allowed_ns * (double)MAX_SHUT_ASK_NS)
		return (double)MAX_SHUT_ASK_NS;
	return allowed_ns > 0 ? wait_ns / allowed_ns : 0;
}

/* Between windows: until the credit may suffice for one. */
static uint64_t shut_wait_ns(const struct budget *budget)
{
	double missing_ns = larger(budget->threshold_ns - budget->credit_ns, 0);
	double wait_ns = missing_ns / budget->share;
	double rest_ns = (double)budget->rest_until_ns - (double)budget->last.now_ns;

	if (wait_ns > (double)SHUT_ASK_NS)
		wait_ns = (double)SHUT_ASK_NS;
	wait_ns = larger(larger(wait_ns, asked_wait_ns(budget)), (double)MIN_SHUT_ASK_NS);
	if (wait_ns < rest_ns)
		wait_ns = rest_ns < (double)REST_ASK_NS ? rest_ns : (double)REST_ASK_NS;
	return (uint64_t)wait_ns;
}

uint64_t budget_next_ns(const struct budget *budget)
{
	uint64_t now_ns = budget->last.now_ns, wait_ns = OPEN_ASK_NS;
	uint64_t end_ns = budget->opened.now_ns + planned_ns(budget);

	if (budget->state != BUDGET_OPEN)
		return now_ns + shut_wait_ns(budget);
	if (end_ns > now_ns && end_ns < now_ns + wait_ns)
		wait_ns = end_ns - now_ns;
	return now_ns + (wait_ns > MIN_ASK_NS ? wait_ns : MIN_ASK_NS);
}

double budget_observed(const struct budget *budget, uint64_t now_ns)
{
	uint64_t observed_ns = budget->observed_ns;

	if (budget->state == BUDGET_OPEN && now_ns > budget->opened.now_ns)
		observed_ns += now_ns - budget->opened.now_ns;
	return now_ns > budget->first.now_ns
		       ? (double)observed_ns / (double)(now_ns - budget->first.now_ns)
		       : 0;
}

double budget_used(const struct budget *budget)
{
	return budget->allowed_ns > 0 ? budget->share * budget->cost_ns / budget->allowed_ns : 0;
}
