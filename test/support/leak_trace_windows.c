/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/leak_trace_windows.h"

#include "test/support/leak_trace_runs.h"

#include <math.h>
#include <stdlib.h>

#define NS_PER_S 1e9
#define WINDOW_S 0.02
#define EVERY_S	 (WINDOW_S / TRACE_OBSERVED_SHARE)
/* leakrec follows so many blocks of a stack and a window, and so many of a window. */
#define MAX_FOLLOWED 4

struct outliving {
	struct site_block block;
	double at_s, freed_s;
	uint32_t window;
	double order; /* at random */
};

struct trace_windows {
	struct observed_time time;
	double *opens;
	size_t nr;
	struct outliving *outliving;
	size_t nr_outliving, max_outliving;
	struct followed_block *followed; /* [of held, in the order in which they were added] */
};

/* How a part's memory looks from outside. */
struct habits {
	double reused;	  /* the chance that the address of a freed block is in use again */
	double untouched; /* the chance that a block is not written to between two looks */
};

void leak_trace_windows_init(struct leak_trace *trace)
{
	struct trace_windows *windows = check(calloc(1, sizeof(*windows)));
	double length_s = trace->runs[0].length_s;

	trace->windows = windows;
	trace->scale = 1 / TRACE_OBSERVED_SHARE;
	windows->opens = check(calloc((size_t)(length_s / EVERY_S) + 2, sizeof(double)));
	for (double at_s = 0; at_s + EVERY_S < length_s; at_s += EVERY_S) {
		double open_s = at_s + (EVERY_S - WINDOW_S) * draw(trace);
		uint64_t open_ns = trace->start_ns + (uint64_t)(open_s * NS_PER_S);

		windows->opens[windows->nr++] = open_s;
		if (observed_time_open(&windows->time, open_ns))
			check(NULL);
		observed_time_close(&windows->time, open_ns + (uint64_t)(WINDOW_S * NS_PER_S), 0);
	}
}

void leak_trace_windows_deinit(struct leak_trace *trace)
{
	struct trace_windows *windows = trace->windows;

	if (!windows)
		return;
	observed_time_deinit(&windows->time);
	free(windows->opens);
	free(windows->outliving);
	free(windows->followed);
	free(windows);
}

bool leak_trace_windows_show(const struct leak_trace *trace, double at_s)
{
	const struct trace_windows *windows = trace->windows;
	size_t index = (size_t)(at_s * (1 / EVERY_S));

	return index < windows->nr && at_s >= windows->opens[index] &&
	       at_s < windows->opens[index] + WINDOW_S;
}

void leak_trace_windows_add(struct leak_trace *trace, const struct site_block *block, double at_s,
			    double freed_s)
{
	struct trace_windows *windows = trace->windows;
	size_t index = (size_t)(at_s * (1 / EVERY_S));
	double open_s;

	if (!leak_trace_windows_show(trace, at_s))
		return;
	open_s = windows->opens[index];
	if (site_stats_enter(trace->stats, block))
		check(NULL);
	if (freed_s <= open_s + WINDOW_S) {
		if (site_stats_leave(trace->stats, block,
				     block->time_ns + (uint64_t)((freed_s - at_s) * NS_PER_S)))
			check(NULL);
		return;
	}
	if (windows->nr_outliving == windows->max_outliving) {
		windows->max_outliving = windows->max_outliving ? 2 * windows->max_outliving : 1024;
		windows->outliving = check(reallocarray(windows->outliving, windows->max_outliving,
							sizeof(*windows->outliving)));
	}
	windows->outliving[windows->nr_outliving++] = (struct outliving){
		.block = *block,
		.at_s = at_s,
		.freed_s = freed_s,
		.window = (uint32_t)index,
		.order = draw(trace),
	};
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
	double cycle_s = (block->freed_s - block->at_s) / fmax(habits->reused, 1e-3);
	double waited_s = -cycle_s * log(draw(trace)), observed_s, index;

	if (isinf(block->freed_s))
		return INFINITY;
	observed_s = waited_s + (double)observed_time_before(
					&windows->time,
					trace->start_ns + (uint64_t)(block->freed_s * NS_PER_S)) /
					NS_PER_S;
	index = floor(observed_s / WINDOW_S);
	return index < (double)windows->nr
		       ? windows->opens[(size_t)index] + observed_s - index * WINDOW_S
		       : INFINITY;
}

/* Looks at the block until it is gone, or until the end. */
static void follow(struct leak_trace *trace, const struct outliving *block,
		   const struct habits *habits)
{
	struct trace_windows *windows = trace->windows;
	double closed_s = windows->opens[block->window] + WINDOW_S;
	double length_s = trace->runs[0].length_s, wait_s = 1, at_s;
	double again_s = draw_seen_again_s(trace, block, habits);
	struct followed_block followed = {
		.closed_ns = trace->start_ns + (uint64_t)(closed_s * NS_PER_S),
	};

	if (site_stats_follow(trace->stats, &block->block))
		check(NULL);
	for (bool is_last = false; !is_last; wait_s *= 2) {
		bool is_there, is_same;

		at_s = closed_s + wait_s * draw_between(trace, 0.75, 1.25);
		is_last = at_s >= length_s;
		at_s = fmin(at_s, length_s);
		is_there = at_s < block->freed_s;
		is_same = draw(trace) < (is_there ? habits->untouched : 0.12);
		if (again_s <= at_s || (!is_there && draw(trace) >= habits->reused)) {
			uint64_t end_ns =
				trace->start_ns + (uint64_t)(fmin(at_s, again_s) * NS_PER_S);

			if (site_stats_leave(trace->stats, &block->block, end_ns))
				check(NULL);
			return;
		}
		followed.nr_untouched =
			is_same && followed.nr_looks ? followed.nr_untouched + 1 : 0;
		followed.nr_looks++;
		followed.seen_ns = trace->start_ns + (uint64_t)(at_s * NS_PER_S);
	}
	leak_trace_hold(trace, &block->block);
	windows->followed[trace->nr_held - 1] = followed;
}

static struct habits draw_habits(struct leak_trace *trace, enum trace_kind kind)
{
	double untouched = draw_between(trace, 0.95, 1);

	/* What is in use is written to, what is kept only in part. */
	if (kind >= TRACE_REPLACED_CACHE && kind < TRACE_FIRST_LEAK)
		untouched = draw_between(trace, 0, 1);
	return (struct habits){
		.reused = draw(trace) < 0.3 ? draw_between(trace, 0.9, 1) : draw(trace),
		.untouched = untouched,
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
		uint64_t closed_ns =
			trace->start_ns +
			(uint64_t)((windows->opens[block->window] + WINDOW_S) * NS_PER_S);

		if (i == 0 || block[-1].window != block->window ||
		    block[-1].block.stack_id != block->block.stack_id)
			nr_of_window = 0;
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
