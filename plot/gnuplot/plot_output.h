/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a plot goes: a window, a picture file or the terminal as text; and what gnuplot must be
 * told for each.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_OUTPUT_H
#define LEAKTOOLS_PLOT_PLOT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum plot_output_kind {
	PLOT_OUTPUT_NONE, /* there is neither a display nor a terminal */
	PLOT_OUTPUT_WINDOW,
	PLOT_OUTPUT_DUMB, /* text on standard output */
	PLOT_OUTPUT_PNG,
	PLOT_OUTPUT_SVG,
	PLOT_OUTPUT_PDF,
};

struct plot_output {
	enum plot_output_kind kind;
	const char *path;     /* of a picture file, else NULL */
	const char *terminal; /* gnuplot's name for it; static */
};

/* True if @path ends in a picture's suffix. */
bool plot_output_knows_suffix(const char *path);

/*
 * Chooses by what the user asked for (@path, @term; each may be NULL), the display, the terminal
 * and what the installed gnuplot can do. Returns 0, or a negative errno after reporting it.
 */
int plot_output_choose(const char *path, const char *term, struct plot_output *ret);

/* The suffix of such pictures, ".png"; NULL: it is none. */
const char *plot_output_suffix(const struct plot_output *output);

/* Tells gnuplot about the output: the program's first lines. @title is the window's. */
void plot_output_begin(const struct plot_output *output, FILE *program, const char *title);

/* Adds to "set title" a font that stands out, where gnuplot's driver knows how. */
void plot_output_print_title_font(const struct plot_output *output, FILE *program);

/* How many characters a line of the legend has room for. */
size_t plot_output_legend_chars(const struct plot_output *output);

/* What all plots have in common: a legend below the plot, a faint grid, filled boxes. */
void plot_output_write_style(const struct plot_output *output, FILE *program);

static inline bool plot_output_is_file(const struct plot_output *output)
{
	return output->path != NULL;
}

#endif
