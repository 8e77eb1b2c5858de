/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gnuplot program while it is written: for a gnuplot that runs, with its data in it, or to be
 * kept (leakplot --save), with its data in files beside it. What draws a plot writes it through
 * this and does not see the difference.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_SCRIPT_H
#define LEAKTOOLS_PLOT_PLOT_SCRIPT_H

#include "plot/gnuplot/plot_output.h"

#include <stdio.h>

struct plot_script {
	FILE *program;
	const struct plot_output *output;
	const char *name; /* the plot's; files of a kept one begin with it */
	const char *dir;  /* where it is kept, for messages; NULL: it is not */
	int dir_fd;
	FILE *data; /* the open file */
	int err;    /* the first one, reported */
};

/*
 * Begins a table called @name. What is written to the stream that it returns, a line a row, are
 * @columns, words for people. NULL: it cannot be kept, and the rest is in vain (reported).
 */
FILE *plot_script_begin_data(struct plot_script *script, const char *name, const char *columns);
void plot_script_end_data(struct plot_script *script);

/* Writes what gnuplot's "plot" takes for the table @name. */
void plot_script_print_data(const struct plot_script *script, const char *name);

#endif
