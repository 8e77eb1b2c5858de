/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a gnuplot script: either for a running gnuplot, with inline data, or to be saved (leakplot
 * --save), with the data in separate files. Plots use the same code for both.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_SCRIPT_H
#define LEAKTOOLS_PLOT_PLOT_SCRIPT_H

#include "plot/gnuplot/plot_output.h"

#include <stdio.h>

#define PLOT_SCRIPT_FILE_NAME 128 /* bytes of the name of a saved file, at most */

struct plot_script {
	FILE *program;
	const struct plot_output *output;
	const char *name; /* of the plot; prefix of saved files */
	const char *dir;  /* the directory of saved files, for messages; NULL: not saved */
	int dir_fd;	  /* -1: the broker has it */
	FILE *data;	  /* the open data file */
	int err;	  /* the first error, reported */
};

/*
 * Begins the data table @name. The caller writes a line per row to the returned stream. @columns
 * describes the columns in the saved file. Returns NULL after reporting an error.
 */
FILE *plot_script_begin_data(struct plot_script *script, const char *name, const char *columns);
void plot_script_end_data(struct plot_script *script);

/*
 * Creates the file @name in the directory of saved files. Returns a descriptor that the caller
 * closes, or a negative errno, reported.
 */
int plot_script_open_file(const struct plot_script *script, const char *name);

/* True if a saved script of @plot, a plot's name, or its data could have the name @file. */
bool plot_script_owns(const char *plot, const char *file);

/* Writes the reference to table @name for gnuplot's "plot" command. */
void plot_script_print_data(const struct plot_script *script, const char *name);

#endif
