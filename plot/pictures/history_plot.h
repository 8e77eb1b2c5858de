/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plots of what happened over time, from the histories of a `leaks` file: what was held, stack
 * on stack; how the stacks that grow do so, each by itself; how long blocks live.
 */
#ifndef LEAKTOOLS_PLOT_HISTORY_PLOT_H
#define LEAKTOOLS_PLOT_HISTORY_PLOT_H

#include "plot/leaks/leak_set.h"
#include "plot/gnuplot/plot_script.h"

#include <stdbool.h>

enum history_plot_kind {
	HISTORY_HELD,
	HISTORY_GROWTH,
	HISTORY_LIFETIMES,
};

struct history_plot_options {
	const char *input;  /* a `leaks` file; "-": standard input */
	const char *output; /* a picture's path, or NULL */
	const char *term;   /* --term, or NULL */
	const char *save;   /* --save, or NULL */
	enum history_plot_kind kind;
};

/* Draws the plot. Returns 0, or a negative errno after reporting it. */
int history_plot_run(const struct history_plot_options *options);

/*
 * The parts: each writes a whole program of what @context, a leak_set with histories, holds. They
 * are plot_drawing.write().
 */
int held_plot_write(struct plot_script *script, const void *context);
int growth_plot_write(struct plot_script *script, const void *context);
int lifetime_plot_write(struct plot_script *script, const void *context);

/* A time axis from the recording's start to its end, and where the end of period @i stands on it.
 */
struct time_axis history_plot_time_axis(const struct leak_set *set);
double history_plot_period_end(const struct leak_set *set, const struct time_axis *axis, size_t i);

#endif
