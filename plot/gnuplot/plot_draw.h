/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws a plot of what has been read, wherever it goes, and keeps its program if that is wanted. */
#ifndef LEAKTOOLS_PLOT_PLOT_DRAW_H
#define LEAKTOOLS_PLOT_PLOT_DRAW_H

#include "plot/gnuplot/plot_script.h"

struct plot_drawing {
	const char *name; /* of files that are kept: a word */
	const char *save; /* the directory to keep them in, or NULL */
	const struct plot_output *output;
	/* Writes the whole program, from plot_output_begin() on. Returns 0, or a reported error. */
	int (*write)(struct plot_script *script, const void *context);
	const void *context;
};

/*
 * Returns 0, or a negative errno after reporting it. An output of PLOT_OUTPUT_NONE is an error
 * unless the plot is kept.
 */
int plot_draw(const struct plot_drawing *drawing);

/* Only keeps it: DIR/NAME.gnuplot, and its data, DIR/NAME-TABLE.dat. */
int plot_draw_save(const struct plot_drawing *drawing);

#endif
