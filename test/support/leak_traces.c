/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/leak_traces.h"

#include "test/support/leak_trace_runs.h"
#include "test/support/leak_trace_windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S    1e9
#define FIRST_STACK 100000 /* of the recording's first event; larger than all others */

enum lifetime_kind { CONSTANT, EXPONENTIAL, LOGNORMAL, PARETO, TWO_KINDS, NR_LIFETIME_KINDS };

struct lifetimes {
	enum lifetime_kind kind;
	double scale_s, shape;
};

const char *trace_kind_name(enum trace_kind kind)
{
	static const char *const names[TRACE_NR_KINDS] = {
		[TRACE_STARTUP_CACHE] = "start-up cache",
		[TRACE_PLATEAU_POOL] = "pool that grows to a plateau",
		[TRACE_REPLACED_CACHE] = "cache with random replacement",
		[TRACE_FIFO_CACHE] = "first-in first-out cache",
		[TRACE_CHURN] = "churn",
		[TRACE_RISING_CHURN] = "churn of rising rate",
		[TRACE_SESSIONS] = "long sessions",
		[TRACE_SLOW_LEAK] = "leak of one in a thousand",
		[TRACE_SHARE_LEAK] = "leak of a share",
		[TRACE_PLAIN_LEAK] = "plain leak",
		[TRACE_CLUMPED_LEAK] = "leak in clumps",
		[TRACE_LATE_LEAK] = "leak that begins late",
		[TRACE_WAVERING_LEAK] = "leak of wavering rate",
		[TRACE_BURST_LEAK] = "burst leak",
	};

	return names[kind];
}

static double length_s(const struct leak_trace *trace)
{
	/* Threads that live on go on with what is not done when a cache is full. */
	bool is_whole = trace->run->actor == TRACE_THREADS &&
			trace->parts[trace->nr_parts - 1].kind > TRACE_PLATEAU_POOL;

	return is_whole ? trace->runs[0].length_s : trace->run->length_s;
}

/* That many blocks in all, of which the current process or thread has a share. */
static size_t share_of(const struct leak_trace *trace, double nr)
{
	double share = trace->share * trace->scale;

	return (size_t)(share == 1 ? nr : ceil(nr * share));
}

/*
 * All processes and threads of a part have the same properties, which are drawn before this, but
 * times of their own.
 */
static void begin_blocks(struct leak_trace *trace)
{
	trace->random ^= (uint64_t)(trace->run - trace->runs) * 0xd1342543de82ef95u;
}

static struct lifetimes draw_lifetimes(struct leak_trace *trace, double max_s)
{
	struct lifetimes lifetimes = {
		.kind = (enum lifetime_kind)(draw(trace) * NR_LIFETIME_KINDS),
		.scale_s = draw_log_between(trace, 1e-6, max_s),
	};

	lifetimes.shape = lifetimes.kind == LOGNORMAL ? draw_between(trace, 0.5, 2.5)
						      : draw_between(trace, 0.9, 2);
	return lifetimes;
}

static double draw_lifetime_s(struct leak_trace *trace, const struct lifetimes *lifetimes)
{
	double x = draw(trace);

	switch (lifetimes->kind) {
	case CONSTANT:
		return lifetimes->scale_s * (1 + 0.1 * x);
	case EXPONENTIAL:
		return -lifetimes->scale_s * log(x);
	case LOGNORMAL: /* Box and Muller */
		return lifetimes->scale_s *
		       exp(lifetimes->shape * sqrt(-2 * log(x)) * cos(2 * M_PI * draw(trace)));
	case PARETO:
		return lifetimes->scale_s * pow(x, -1 / lifetimes->shape);
	default: /* one in fifty lives a thousand times as long */
		return -lifetimes->scale_s * log(draw(trace)) * (x < 0.02 ? 1000 : 1);
	}
}

void leak_trace_hold(struct leak_trace *trace, const struct site_block *block)
{
	if (trace->nr_held == trace->max_held) {
		trace->max_held = trace->max_held ? trace->max_held * 2 : 1024;
		trace->held =
			check(reallocarray(trace->held, trace->max_held, sizeof(*trace->held)));
	}
	trace->nr_held++;
	trace->held[trace->nr_held - 1] = (struct heap_block){
		.address = 0x1000 + 16 * trace->nr_held,
		.size_bytes = block->size_bytes,
		.size_known = true,
		.allocated = {.time_ns = block->time_ns,
			      .stack_id = block->stack_id,
			      .pid = trace->run->pid},
	};
}

/* A block of one stack, @time_s after the start of its process or thread. @life_s may be INFINITY.
 */
static void add_one_block(struct leak_trace *trace, uint32_t stack_id, uint64_t size_bytes,
			  double time_s, double life_s)
{
	const struct trace_run *run = trace->run;
	double at_s = run->start_s + time_s, freed_s = at_s + life_s;
	struct site_block block = {
		.stack_id = stack_id,
		.size_bytes = size_bytes,
		.time_ns = trace->start_ns + (uint64_t)(at_s * NS_PER_S),
	};
	int err;

	if (at_s < 0 || at_s >= run->end_s || block.time_ns > trace->end_ns)
		return;
	if (run->actor == TRACE_PASSING_THREADS &&
	    trace->parts[trace->nr_parts - 1].kind < TRACE_FIRST_LEAK)
		freed_s = fmin(freed_s, run->end_s);
	if (trace->windows) {
		trace->parts[trace->nr_parts - 1].nr_staying += isinf(life_s) != 0;
		leak_trace_windows_add(trace, &block, at_s, freed_s);
		return;
	}
	err = site_stats_enter(trace->stats, &block);
	if (!err && freed_s < trace->runs[0].length_s &&
	    (freed_s <= run->end_s || run->actor == TRACE_PASSING_THREADS)) {
		err = site_stats_leave(trace->stats, &block,
				       block.time_ns + (uint64_t)((freed_s - at_s) * NS_PER_S));
	} else if (!err) {
		leak_trace_hold(trace, &block);
		if (run->end_s < trace->runs[0].length_s && run->actor != TRACE_PASSING_THREADS)
			err = site_stats_exit(trace->stats, &block,
					      trace->start_ns + (uint64_t)(run->end_s * NS_PER_S));
	}
	if (err)
		check(NULL);
}

/* A block of the newest part, or one of each of its stacks. */
static void add_block(struct leak_trace *trace, uint64_t size_bytes, double time_s, double life_s)
{
	const struct trace_part *part = &trace->parts[trace->nr_parts - 1];

	if (part->spread == TRACE_MANY_STACKS) {
		/* Some stacks are ten times as frequent as others. */
		uint32_t index = (uint32_t)(pow(draw(trace), 2) * part->nr);

		add_one_block(trace, part->first + index,
			      (uint64_t)((double)size_bytes * draw_between(trace, 0.1, 2)), time_s,
			      life_s);
		return;
	}
	for (uint32_t i = 0; i < part->nr; i++) {
		if (part->spread == TRACE_CALLERS && i && i % part->nr_ways == 0)
			time_s += part->step_s * draw_between(trace, 0.5, 1.5);
		add_one_block(trace, part->first + i, size_bytes << i % 4, time_s + i * 1e-6,
			      life_s);
	}
}

/* Arrivals of a pool's entries: fewer and fewer, or a fixed number until it is full. */
static void add_pool(struct leak_trace *trace, uint64_t size_bytes, size_t nr)
{
	double length = length_s(trace), fill_s = length * draw_between(trace, 0.03, 0.2);
	bool linear = draw(trace) < 0.5;
	double freed = draw(trace) < 0.3 ? 0.03 : 0;

	if (linear)
		fill_s *= 3;
	begin_blocks(trace);
	for (size_t i = 0; i < nr; i++)
		add_block(trace, size_bytes,
			  linear ? fill_s * draw(trace) : -fill_s * log(draw(trace)),
			  draw(trace) < freed ? length * 0.01 : INFINITY);
}

static void add_constant_cache(struct leak_trace *trace, uint64_t size_bytes, enum trace_kind kind)
{
	double length = length_s(trace), mean_s = length * draw_log_between(trace, 0.01, 1);
	size_t nr_entries = share_of(trace, draw_log_between(trace, 10, 300));

	begin_blocks(trace);
	for (size_t i = 0; i < nr_entries; i++) {
		double time_s = length * 0.02 * draw(trace);

		while (time_s < length) {
			double life_s = kind == TRACE_FIFO_CACHE
						? mean_s * draw_between(trace, 0.9, 1.1)
						: -mean_s * log(draw(trace));

			add_block(trace, size_bytes, time_s, life_s);
			time_s += life_s;
		}
	}
}

/* Allocations at random times; some stay forever. */
static void add_churn(struct leak_trace *trace, uint64_t size_bytes, enum trace_kind kind)
{
	double length = length_s(trace), share = 0, from_s = 0, to_s = length;
	struct lifetimes lifetimes = draw_lifetimes(trace, length / 100);
	size_t nr = (size_t)draw_log_between(trace, 300, 10000);

	if (kind == TRACE_SESSIONS)
		lifetimes = (struct lifetimes){draw(trace) < 0.5 ? EXPONENTIAL : CONSTANT,
					       length * draw_between(trace, 0.1, 0.33), 1};
	/* A block that lives longer than the recording cannot be told from a leak. */
	if (lifetimes.kind == TWO_KINDS)
		lifetimes.scale_s = fmin(lifetimes.scale_s, length / 5000);
	if (kind >= TRACE_FIRST_LEAK)
		lifetimes.scale_s = fmin(lifetimes.scale_s, length / 10000);
	if (kind == TRACE_SLOW_LEAK) {
		nr = (size_t)draw_log_between(trace, 15000, 40000);
		share = 0.001;
	} else if (kind == TRACE_SHARE_LEAK) {
		share = draw_log_between(trace, 0.02, 0.5);
		nr += 1000;
	} else if (kind == TRACE_BURST_LEAK) {
		from_s = length * draw_between(trace, 0.15, 0.85);
		to_s = from_s + length * 0.02;
		share = 1;
		nr += 1000;
	}
	nr = share_of(trace, (double)nr);
	begin_blocks(trace);
	for (size_t i = 0; i < nr; i++) {
		double time_s = length * draw(trace);
		bool stays;

		if (trace->windows && !leak_trace_windows_show(trace, time_s))
			continue;
		stays = time_s >= from_s && time_s < to_s && draw(trace) < share;

		if (kind == TRACE_RISING_CHURN && time_s < length / 2 && draw(trace) < 0.5)
			continue;
		add_block(trace, size_bytes, time_s,
			  stays ? INFINITY : draw_lifetime_s(trace, &lifetimes));
	}
}

/* The amount of work: in waves, with pauses without any, one of them at the end. */
static void add_wavering(struct leak_trace *trace, uint64_t size_bytes)
{
	size_t nr = share_of(trace, draw_log_between(trace, 1000, 30000));
	double length = length_s(trace), phase = draw(trace), waves = draw_between(trace, 2, 20);
	double pauses[4];

	for (size_t i = 0; i < 3; i++)
		pauses[i] = draw(trace);
	pauses[3] = 0.98;
	begin_blocks(trace);
	for (size_t i = 0; i < nr; i++) {
		double at = draw(trace);
		bool paused = draw(trace) > 0.7 + 0.3 * sin(2 * M_PI * (waves * at + phase));

		for (size_t j = 0; j < 4; j++)
			paused |= at >= pauses[j] && at < pauses[j] + 0.02;
		if (!paused)
			add_block(trace, size_bytes, at * length, INFINITY);
	}
}

static void begin_part(struct leak_trace *trace, enum trace_kind kind)
{
	struct trace_part part = {.kind = kind, .first = (uint32_t)trace->nr_stacks, .nr = 1};
	double spread = trace->set == TRACE_SIMPLE ? 0 : draw(trace);

	if (trace->set == TRACE_SERVERS)
		part.actor = leak_trace_draw_actor(trace, kind);

	if (trace->set == TRACE_SHARED && spread > 0.6) {
		part.spread = TRACE_CALLERS;
		part.nr_ways = (uint32_t)draw_between(trace, 2, 5);
		part.nr = part.nr_ways * (uint32_t)draw_between(trace, 3, 8);
		part.step_s = trace->runs[0].length_s * draw_log_between(trace, 1e-6, 1e-4);
	} else if (trace->set == TRACE_SHARED) {
		part.spread = spread > 0.3 ? TRACE_TOGETHER : TRACE_ONE_STACK;
		part.nr = part.spread == TRACE_TOGETHER ? 2 : 1;
	} else if (spread > 0.5) {
		part.spread = TRACE_MANY_STACKS;
		part.nr = (uint32_t)draw_log_between(trace, 20, 800);
	} else if (spread > 0.25) {
		part.spread = TRACE_TOGETHER;
		part.nr = (uint32_t)draw_between(trace, 2, 9);
	}
	trace->parts =
		check(reallocarray(trace->parts, trace->nr_parts + 1, sizeof(*trace->parts)));
	trace->part_of = check(
		reallocarray(trace->part_of, trace->nr_stacks + part.nr, sizeof(*trace->part_of)));
	for (uint32_t i = 0; i < part.nr; i++)
		trace->part_of[trace->nr_stacks++] = (uint32_t)trace->nr_parts;
	trace->parts[trace->nr_parts++] = part;
	trace->nr_leaks += kind >= TRACE_FIRST_LEAK;
}

/* The blocks of the current process or thread. */
static void run_part(struct leak_trace *trace, enum trace_kind kind, uint64_t size_bytes,
		     double nr_in_all)
{
	double length = length_s(trace);
	size_t nr = share_of(trace, nr_in_all), clump = 1;
	double from_s = 0;

	switch (kind) {
	case TRACE_STARTUP_CACHE:
		nr = share_of(trace, draw_log_between(trace, 1, 2000));
		begin_blocks(trace);
		for (size_t i = 0; i < nr; i++)
			add_block(trace, size_bytes, length * 0.05 * draw(trace), INFINITY);
		break;
	case TRACE_PLATEAU_POOL:
		add_pool(trace, size_bytes, nr);
		break;
	case TRACE_REPLACED_CACHE:
	case TRACE_FIFO_CACHE:
		add_constant_cache(trace, size_bytes, kind);
		break;
	case TRACE_CLUMPED_LEAK:
		clump = (size_t)draw_between(trace, 2, 10);
		nr = nr / clump + share_of(trace, 20);
		break;
	case TRACE_LATE_LEAK:
		from_s = length * draw_between(trace, 0.4, 0.8);
		break;
	case TRACE_WAVERING_LEAK:
		add_wavering(trace, size_bytes);
		break;
	case TRACE_PLAIN_LEAK:
		break;
	default:
		add_churn(trace, size_bytes, kind);
	}
	if (kind == TRACE_PLAIN_LEAK || kind == TRACE_CLUMPED_LEAK || kind == TRACE_LATE_LEAK) {
		begin_blocks(trace);
		for (size_t i = 0; i < nr; i++) {
			double time_s = draw_between(trace, from_s, length);

			for (size_t j = 0; j < clump; j++)
				add_block(trace, size_bytes, time_s + (double)j * 1e-6, INFINITY);
		}
	}
}

static void add_part(struct leak_trace *trace, enum trace_kind kind)
{
	uint64_t size_bytes = (uint64_t)draw_log_between(trace, 16, 65536);
	double nr = draw_log_between(trace, 20, 2000);
	const struct trace_part *part;
	enum trace_actor actor;
	uint64_t random;

	begin_part(trace, kind);
	part = &trace->parts[trace->nr_parts - 1];
	actor = part->actor == TRACE_ONE_WORKER ? TRACE_WORKERS : part->actor;
	random = trace->random;
	for (size_t i = 0; i < trace->nr_runs; i++) {
		struct trace_run *run = &trace->runs[i];
		bool loads = part->actor == TRACE_ONE_WORKER && !run->is_leaker;

		if (run->actor != actor)
			continue;
		trace->random = random;
		trace->run = run;
		trace->share = loads || kind < TRACE_FIRST_LEAK ? run->share
			       : part->actor == TRACE_ONE_WORKER
				       ? run->length_s / leak_trace_lived_s(trace, run)
				       : run->leak_share;
		run_part(trace, loads ? TRACE_STARTUP_CACHE : kind, size_bytes, nr);
	}
	trace->run = &trace->runs[0];
}

struct process_life leak_trace_life(const void *context, pid_t pid, uint64_t time_ns)
{
	const struct leak_trace *trace = context;
	const struct trace_run *run = &trace->runs[pid - 1];
	struct process_life life = {0};

	if (run->start_s > 0)
		life.start_ns = trace->start_ns + (uint64_t)(run->start_s * NS_PER_S);
	if (run->end_s < trace->runs[0].length_s)
		life.end_ns = trace->start_ns + (uint64_t)(run->end_s * NS_PER_S);
	return life;
}

/* The functions of a stack of TRACE_SHARED. Returns their number. */
static size_t shared_functions(const struct leak_trace *trace, uint32_t stack_id, uint64_t *ret)
{
	uint32_t index = trace->part_of[stack_id];
	const struct trace_part *part = &trace->parts[index];
	uint64_t helper = 0x500000 + index % 3;

	ret[0] = 1;
	if (part->spread == TRACE_CALLERS) {
		uint32_t caller = (stack_id - part->first) / part->nr_ways;

		ret[1] = 2 + (index + caller) % 5; /* in different modules */
		ret[2] = 0x400000 + index * 100 + caller;
		ret[3] = 1000 + index;
		ret[4] = 0x1000000 + (stack_id - part->first) % part->nr_ways;
		return 5;
	}
	if (part->kind >= TRACE_FIRST_LEAK)
		helper = 0x510000 + index % 2;
	ret[1] = 2 + index % 5;
	ret[2] = 1000 + index;
	ret[3] = 2 * helper + (part->spread == TRACE_TOGETHER);
	ret[4] = 0x2000000 + stack_id - part->first;
	return part->spread == TRACE_TOGETHER ? 5 : 4;
}

int leak_trace_functions(void *context, uint32_t stack_id, uint64_t *ret, size_t max,
			 size_t *ret_nr)
{
	const struct leak_trace *trace = context;
	/* The first event's stack is main's alone. */
	uint32_t index = stack_id < trace->nr_stacks ? trace->part_of[stack_id] : 0;
	const struct trace_part *part = &trace->parts[index];
	/* Parts share the functions of "main" and of five modules. */
	uint64_t functions[] = {
		1,
		2 + index % 5,
		1000 + index,
		0x100000 + index * 1000 + stack_id % 12,
		0x200000 + stack_id % 7,
		0x1000000 + stack_id,
	};
	size_t nr = stack_id >= trace->nr_stacks ? 1
		    : trace->set == TRACE_SHARED ? shared_functions(trace, stack_id, functions)
		    : part->spread == TRACE_MANY_STACKS ? 6
		    : part->spread == TRACE_TOGETHER	? 4
							: TRACE_PART_DEPTH;

	if (trace->set != TRACE_SHARED && part->spread == TRACE_TOGETHER)
		functions[TRACE_PART_DEPTH] = 0x1000000 + stack_id;
	*ret_nr = nr < max ? nr : max;
	memcpy(ret, functions, *ret_nr * sizeof(*ret));
	return 0;
}

static int compare_by_time(const void *a, const void *b)
{
	const struct heap_block *x = a, *y = b;

	return (x->allocated.time_ns > y->allocated.time_ns) -
	       (x->allocated.time_ns < y->allocated.time_ns);
}

static void init(struct leak_trace *trace, uint64_t seed, enum trace_set set, enum trace_view view)
{
	static const size_t nr_of[TRACE_NR_KINDS] = {
		[TRACE_STARTUP_CACHE] = 10, [TRACE_PLATEAU_POOL] = 8, [TRACE_REPLACED_CACHE] = 3,
		[TRACE_FIFO_CACHE] = 3,	    [TRACE_CHURN] = 20,	      [TRACE_RISING_CHURN] = 4,
		[TRACE_SESSIONS] = 3,
	};
	struct site_block first = {0};
	size_t nr_leaks;

	*trace = (struct leak_trace){
		.random = (seed + 1) * 0x9e3779b97f4a7c15u,
		.stats = check(site_stats_create()),
		.start_ns = 1000000000000,
		.set = set,
		.scale = 1,
	};
	trace->end_ns = trace->start_ns +
			(uint64_t)(NS_PER_S *
				   draw_log_between(trace, view == TRACE_WHOLE ? 20 : 600, 7200));
	leak_trace_add_runs(trace);
	if (view != TRACE_WHOLE)
		leak_trace_windows_init(trace, view == TRACE_IN_HARD_WINDOWS);
	/* The recording begins with an event of its own. */
	first = (struct site_block){
		.stack_id = FIRST_STACK, .size_bytes = 1, .time_ns = trace->start_ns};
	if (site_stats_enter(trace->stats, &first) ||
	    site_stats_leave(trace->stats, &first, trace->start_ns + 1000))
		check(NULL);
	for (enum trace_kind kind = 0; kind < TRACE_FIRST_LEAK; kind++)
		for (size_t i = 0; i < nr_of[kind]; i++)
			add_part(trace, kind);
	nr_leaks = 3 + (size_t)(draw(trace) * 8);
	for (size_t i = 0; i < nr_leaks; i++)
		add_part(trace,
			 TRACE_FIRST_LEAK + (enum trace_kind)((i + seed) %
							      (TRACE_NR_KINDS - TRACE_FIRST_LEAK)));
	if (view != TRACE_WHOLE)
		leak_trace_windows_settle(trace);
	qsort(trace->held, trace->nr_held, sizeof(*trace->held), compare_by_time);
}

void leak_trace_init(struct leak_trace *trace, uint64_t seed, enum trace_set set)
{
	init(trace, seed, set, TRACE_WHOLE);
}

void leak_trace_init_windows(struct leak_trace *trace, uint64_t seed, enum trace_view view)
{
	init(trace, seed, TRACE_SIMPLE, view);
}

void leak_trace_deinit(struct leak_trace *trace)
{
	site_stats_destroy(trace->stats);
	free(trace->held);
	free(trace->parts);
	free(trace->part_of);
	free(trace->runs);
	leak_trace_windows_deinit(trace);
}
