/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/leak_trace_windows.h"

#include "common/partition_point.h"
#include "test/support/leak_trace_runs.h"

#include <math.h>
#include <stdlib.h>

#define NS_PER_S     1e9
#define WINDOW_S     0.02
#define MIN_WINDOW_S 0.005
/* leakrec follows so many blocks of a stack and a window. */
#define MAX_FOLLOWED 4
/* After a window: its last events have come. */
#define FIRST_LOOK_S 0.1
/* Hard windows: calls that return up to so long after the close began before it. */
#define CROSSING_S   0.0002
#define SHORT_LIFE_S 0.05
#define DELAY_S	     0.005 /* of a thread that has lost its CPU */

struct outliving {
	struct site_block block;
	double at_s, freed_s, usual_s; /* usual_s: how long it had lived without a delay */
	uint32_t window;
	double order; /* at random */
};

struct trace_window {
	double open_s, close_s, before_s; /* before_s: observed before it */
};

struct trace_windows {
	struct observed_time time;
	bool are_hard;
	double delayed; /* the share of blocks whose thread loses its CPU meanwhile */
	struct trace_window *list;
	size_t nr;
	struct outliving *outliving;
	size_t nr_outliving, max_outliving;
	struct followed_block *followed; /* [of held, in the order in which they were added] */
};

/* How a part's memory looks from outside. */
struct habits {
	double reused;	  /* the chance that the address of a freed block is in use again */
	double untouched; /* the chance that a block is not written to between two looks */
	double taken;	  /* the chance that another part's leak stays where a short life was */
};

static uint64_t time_ns_of(const struct leak_trace *trace, double at_s)
{
	return trace->start_ns + (uint64_t)(at_s * NS_PER_S);
}

void leak_trace_windows_init(struct leak_trace *trace, bool are_hard)
{
	struct trace_windows *windows = check(calloc(1, sizeof(*windows)));
	double length_s = trace->runs[0].length_s, before_s = 0, window_s, every_s;

	trace->windows = windows;
	trace->scale = 1 / TRACE_OBSERVED_SHARE;
	windows->are_hard = are_hard;
	windows->delayed = are_hard ? draw_between(trace, 0, 0.05) : 0;
	windows->list = check(calloc((size_t)(length_s / MIN_WINDOW_S * TRACE_OBSERVED_SHARE) + 2,
				     sizeof(*windows->list)));
	for (double at_s = 0;; at_s += every_s) {
		double open_s;

		window_s = are_hard ? draw_log_between(trace, MIN_WINDOW_S, 0.2) : WINDOW_S;
		every_s = window_s / TRACE_OBSERVED_SHARE;
		if (at_s + every_s >= length_s)
			break;
		open_s = at_s + (every_s - window_s) * draw(trace);
		windows->list[windows->nr++] =
			(struct trace_window){open_s, open_s + window_s, before_s};
		before_s += window_s;
		if (observed_time_open(&windows->time, time_ns_of(trace, open_s)))
			check(NULL);
		observed_time_close(&windows->time, time_ns_of(trace, open_s + window_s), 0);
	}
}

void leak_trace_windows_deinit(struct leak_trace *trace)
{
	struct trace_windows *windows = trace->windows;

	if (!windows)
		return;
	observed_time_deinit(&windows->time);
	free(windows->list);
	free(windows->outliving);
	free(windows->followed);
	free(windows);
}

/* The last window that opened by @at_s, or NULL. */
static const struct trace_window *window_at(const struct trace_windows *windows, double at_s)
{
	size_t nr = partition_point(windows->nr, i, windows->list[i].open_s <= at_s);

	return nr ? &windows->list[nr - 1] : NULL;
}

bool leak_trace_windows_show(const struct leak_trace *trace, double at_s)
{
	const struct trace_window *window = window_at(trace->windows, at_s);

	return window && at_s < window->close_s + (trace->windows->are_hard ? CROSSING_S : 0);
}

void leak_trace_windows_add(struct leak_trace *trace, const struct site_block *block, double at_s,
			    double freed_s)
{
	struct trace_windows *windows = trace->windows;
	const struct trace_window *window = window_at(windows, at_s);
	struct outliving outliving = {
		.block = *block, .at_s = at_s, .freed_s = freed_s, .usual_s = freed_s - at_s};

	if (!leak_trace_windows_show(trace, at_s))
		return;
	/* The recorder gives a sample that comes after the close the time of the close. */
	if (at_s >= window->close_s)
		outliving.block.time_ns = time_ns_of(trace, window->close_s);
	if (windows->are_hard && draw(trace) < windows->delayed)
		outliving.freed_s -= DELAY_S * log(draw(trace));
	if (site_stats_enter(trace->stats, &outliving.block))
		check(NULL);
	if (outliving.freed_s <= window->close_s) {
		if (site_stats_leave(trace->stats, block,
				     block->time_ns +
					     (uint64_t)((outliving.freed_s - at_s) * NS_PER_S)))
			check(NULL);
		return;
	}
	if (windows->nr_outliving == windows->max_outliving) {
		windows->max_outliving = windows->max_outliving ? 2 * windows->max_outliving : 1024;
		windows->outliving = check(reallocarray(windows->outliving, windows->max_outliving,
							sizeof(*windows->outliving)));
	}
	outliving.window = (uint32_t)(window - windows->list);
	outliving.order = draw(trace);
	windows->outliving[windows->nr_outliving++] = outliving;
}

static int compare(const void *a, const void *b)
{
	const struct outliving *x = a, *y = b;

	if (x->block.stack_id != y->block.stack_id)
		return x->block.stack_id < y->block.stack_id ? -1 : 1;
	if (x->window != y->window)
		return x->window < y->window ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/*
 * When a window shows that the address was allocated again: a program that needs the address of a
 * freed block again does so about once in a lifetime.
 */
static double draw_seen_again_s(struct leak_trace *trace, const struct outliving *block,
				const struct habits *habits)
{
	const struct trace_windows *windows = trace->windows;
	double observed_s = -block->usual_s / fmax(habits->reused, 1e-3) * log(draw(trace));
	size_t nr;

	if (isinf(block->freed_s))
		return INFINITY;
	observed_s +=
		(double)observed_time_before(&windows->time, time_ns_of(trace, block->freed_s)) /
		NS_PER_S;
	nr = partition_point(windows->nr, i, windows->list[i].before_s <= observed_s);
	observed_s -= windows->list[nr - 1].before_s;
	observed_s += windows->list[nr - 1].open_s;
	return observed_s < windows->list[nr - 1].close_s ? observed_s : INFINITY;
}

/* As parser/calls/window_calls.c does it. */
static void end(struct leak_trace *trace, const struct outliving *block,
		const struct followed_block *followed, uint64_t time_ns)
{
	if (site_stats_leave_late(trace->stats, &block->block, followed->closed_ns, time_ns))
		check(NULL);
}

/* Looks at the block until it is gone, or until the end. */
static void follow(struct leak_trace *trace, const struct outliving *block,
		   const struct habits *habits)
{
	struct trace_windows *windows = trace->windows;
	const struct trace_window *window = &windows->list[block->window];
	double length_s = trace->runs[0].length_s, wait_s = 1;
	double at_s = window->close_s;
	double again_s = draw_seen_again_s(trace, block, habits), taken_s = INFINITY;
	struct followed_block followed = {
		.closed_ns = time_ns_of(trace, window->close_s),
		.window_ns = (uint64_t)((window->close_s - window->open_s) * NS_PER_S),
	};

	if (habits->taken > 0 && block->usual_s < SHORT_LIFE_S && draw(trace) < habits->taken) {
		taken_s = block->freed_s;
		again_s = INFINITY;
	}
	site_stats_follow(trace->stats, &block->block, followed.closed_ns);
	for (bool is_last = false; !is_last;) {
		bool is_there, is_same, was_taken = at_s >= taken_s;

		if (!followed.nr_looks) {
			at_s += FIRST_LOOK_S;
		} else {
			at_s += wait_s * draw_between(trace, 0.5, 1.5);
			wait_s *= 2;
		}
		is_last = at_s >= length_s;
		at_s = fmin(at_s, length_s);
		is_there = at_s < block->freed_s;
		is_same = draw(trace) < (is_there ? habits->untouched : 0.12);
		if (at_s >= taken_s) {
			is_there = true;
			is_same = was_taken;
		}
		if (again_s <= at_s || (!is_there && draw(trace) >= habits->reused)) {
			end(trace, block, &followed, time_ns_of(trace, fmin(at_s, again_s)));
			return;
		}
		followed.nr_untouched =
			is_same && followed.nr_looks ? followed.nr_untouched + 1 : 0;
		followed.nr_looks++;
		followed.seen_ns = time_ns_of(trace, at_s);
	}
	leak_trace_hold(trace, &block->block);
	windows->followed[trace->nr_held - 1] = followed;
}

static struct habits draw_habits(struct leak_trace *trace, enum trace_kind kind)
{
	double untouched = draw_between(trace, 0.95, 1), taken = 0;

	/* What is in use is written to, what is kept only in part. */
	if (kind >= TRACE_REPLACED_CACHE && kind < TRACE_FIRST_LEAK)
		untouched = draw_between(trace, 0, 1);
	if (trace->windows->are_hard && draw(trace) < 0.5)
		taken = draw(trace);
	return (struct habits){
		.reused = draw(trace) < 0.3 ? draw_between(trace, 0.9, 1) : draw(trace),
		.untouched = untouched,
		.taken = taken,
	};
}

void leak_trace_windows_settle(struct leak_trace *trace)
{
	struct trace_windows *windows = trace->windows;
	struct habits *habits = check(calloc(trace->nr_parts + 1, sizeof(*habits)));
	uint32_t nr_of_window = 0;

	windows->followed = check(calloc(windows->nr_outliving + 1, sizeof(*windows->followed)));
	for (size_t i = 0; i < trace->nr_parts; i++)
		habits[i] = draw_habits(trace, trace->parts[i].kind);
	qsort(windows->outliving, windows->nr_outliving, sizeof(*windows->outliving), compare);
	for (size_t i = 0; i < windows->nr_outliving; i++) {
		const struct outliving *block = &windows->outliving[i];
		uint64_t closed_ns = time_ns_of(trace, windows->list[block->window].close_s);

		if (i == 0 || block[-1].window != block->window ||
		    block[-1].block.stack_id != block->block.stack_id)
			nr_of_window = 0;
		if (site_stats_outlive(trace->stats, &block->block, closed_ns))
			check(NULL);
		if (nr_of_window++ < MAX_FOLLOWED)
			follow(trace, block, &habits[trace->part_of[block->block.stack_id]]);
		else if (site_stats_lose_sight(trace->stats, &block->block, closed_ns))
			check(NULL);
	}
	free(habits);
}

const struct observed_time *leak_trace_observed(const struct leak_trace *trace)
{
	return &trace->windows->time;
}

const struct followed_block *leak_trace_followed(const void *context,
						 const struct heap_block *block)
{
	const struct leak_trace *trace = context;

	/* leak_trace_hold() numbers them by their addresses. */
	return &trace->windows->followed[(block->address - 0x1000) / 16 - 1];
}
