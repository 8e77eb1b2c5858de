/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output of a plot: a window, a picture file, or text on the terminal; and the gnuplot commands
 * for each.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_OUTPUT_H
#define LEAKTOOLS_PLOT_PLOT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum plot_output_kind {
	PLOT_OUTPUT_NONE, /* neither a display nor a terminal */
	PLOT_OUTPUT_WINDOW,
	PLOT_OUTPUT_DUMB, /* text on standard output */
	PLOT_OUTPUT_PNG,
	PLOT_OUTPUT_SVG,
	PLOT_OUTPUT_PDF,
};

struct plot_output {
	enum plot_output_kind kind;
	const char *path;     /* the picture file, or NULL */
	const char *terminal; /* gnuplot's name for it; static */
};

/* Whether @path ends in a suffix of pictures. */
bool plot_output_knows_suffix(const char *path);

/*
 * Chooses the output by the user's options (@path, @term; each may be NULL), the display, the
 * terminal and the installed gnuplot. Returns 0, or a negative errno after reporting it.
 */
int plot_output_choose(const char *path, const char *term, struct plot_output *ret);

/* The suffix of pictures, such as ".png"; NULL for other outputs. */
const char *plot_output_suffix(const struct plot_output *output);

/*
 * Writes @text as a gnuplot string of at most @max_chars characters, escaped so that gnuplot takes
 * it literally. Control characters and invalid UTF-8 become \xNN. The quotes are double ones,
 * because gnuplot 5.4 ends a single-quoted string at a pair of quotes at its beginning or after
 * another pair. plot_output_begin() turns off gnuplot's enhanced text mode. In that, an SVG still
 * has characters by number (&#x41;), so their & is one, too.
 */
void plot_output_print_string(const struct plot_output *output, FILE *program, const char *text,
			      size_t max_chars);
/* The same for text that diag_print_escaped() has written. */
void plot_output_print_escaped(const struct plot_output *output, FILE *program, const char *text,
			       size_t max_chars);

/* Writes the first commands of the script, which set the output. @title is for a window. */
void plot_output_begin(const struct plot_output *output, FILE *program, const char *title);

/*
 * Ends "set title": with a larger or bold font, if the terminal can show one, and on a text
 * terminal with a line for the label of the y axis.
 */
void plot_output_end_title(const struct plot_output *output, FILE *program);

/* Labels the y axis. On a text terminal, gnuplot would leave the label out. */
void plot_output_write_ylabel(const struct plot_output *output, FILE *program, const char *format,
			      ...) __attribute__((format(printf, 3, 4)));

/* The number of characters that fit in a line of the title, and of the legend. */
size_t plot_output_title_chars(const struct plot_output *output);
size_t plot_output_legend_chars(const struct plot_output *output);

/* Writes the common style: a legend below the plot, a faint grid, filled boxes. */
void plot_output_write_style(const struct plot_output *output, FILE *program);

/* Says that the picture file is written. */
void plot_output_tell(const struct plot_output *output);

static inline bool plot_output_is_file(const struct plot_output *output)
{
	return output->path != NULL;
}

#endif
