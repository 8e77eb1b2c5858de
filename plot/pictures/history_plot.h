/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plots over time, from the histories of a `leaks` file: held amounts as stacked layers, the growth
 * of each stack, and the lifetimes of blocks.
 */
#ifndef LEAKTOOLS_PLOT_HISTORY_PLOT_H
#define LEAKTOOLS_PLOT_HISTORY_PLOT_H

#include "plot/gnuplot/plot_script.h"
#include "plot/leaks/leak_set.h"

#include <stdbool.h>

enum history_plot_kind {
	HISTORY_HELD,
	HISTORY_GROWTH,
	HISTORY_LIFETIMES,
};

struct history_plot_options {
	const char *input; /* a `leaks` file; "-": standard input */
	const char *save;  /* --save, or NULL */
	enum history_plot_kind kind;
};

/* plot_drawing.name */
const char *history_plot_name(enum history_plot_kind kind);

/* Draws the plot to @output. Returns 0, or a negative errno after reporting it. */
int history_plot_run(const struct history_plot_options *options, const struct plot_output *output);

/*
 * plot_drawing.write() of each kind. @context is a leak_set with histories.
 */
int held_plot_write(struct plot_script *script, const void *context);
int growth_plot_write(struct plot_script *script, const void *context);
int lifetime_plot_write(struct plot_script *script, const void *context);

/* The time axis of the recording, and the position of the end of period @i on it. */
struct time_axis history_plot_time_axis(const struct leak_set *set);
double history_plot_period_end(const struct leak_set *set, const struct time_axis *axis, size_t i);

#endif
