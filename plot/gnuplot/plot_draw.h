/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws a plot to its output, and saves its gnuplot script for leakplot --save. */
#ifndef LEAKTOOLS_PLOT_PLOT_DRAW_H
#define LEAKTOOLS_PLOT_PLOT_DRAW_H

#include "plot/gnuplot/plot_script.h"

struct plot_drawing {
	const char *name; /* prefix of saved files: one word */
	const char *save; /* the directory for saved files, or NULL */
	const struct plot_output *output;
	/* Writes the whole script, from plot_output_begin(). Returns 0, or a reported error. */
	int (*write)(struct plot_script *script, const void *context);
	const void *context;
};

/*
 * Draws and saves the plot. Returns 0, or a negative errno after reporting it. PLOT_OUTPUT_NONE is
 * an error unless the plot is saved.
 */
int plot_draw(const struct plot_drawing *drawing);

/* Only saves the plot: DIR/NAME.gnuplot, and its data, DIR/NAME-TABLE.dat. */
int plot_draw_save(const struct plot_drawing *drawing);

#endif
