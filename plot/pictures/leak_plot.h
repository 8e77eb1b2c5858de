/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plots leaks by size over time or event number: a point per held block, or a density map if there
 * are many. A recurring leak shows as a row of points; the legend names the most frequent stacks
 * (or verdicts), the right-hand axis the most frequent sizes.
 */
#ifndef LEAKTOOLS_PLOT_LEAK_PLOT_H
#define LEAKTOOLS_PLOT_LEAK_PLOT_H

#include "common/size_range.h"
#include "plot/gnuplot/plot_output.h"
#include "plot/leaks/leak_axes.h"

#include <stdbool.h>

enum leak_plot_colour {
	LEAK_COLOUR_STACK,
	LEAK_COLOUR_VERDICT,
};

struct leak_plot_options {
	const char *input; /* a `leaks` file; "-": standard input */
	const char *save;  /* --save, or NULL */
	enum leak_plot_colour colour;
	const char *size_text;	/* --size as given, or NULL */
	struct size_range size; /* if size_text */
	enum leak_size_scale scale;
	bool by_event;
};

#define LEAK_PLOT_NAME "leaks" /* plot_drawing.name */

/* Draws the plot to @output. Returns 0, or a negative errno after reporting it. */
int leak_plot_run(const struct leak_plot_options *options, const struct plot_output *output);

#endif
