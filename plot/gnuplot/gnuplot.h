/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gnuplot process, started without a shell. It reads its script from a pipe and writes its output
 * and messages to memory, so gnuplot itself opens no file of the user, and a failed plot writes to
 * none.
 *
 * Callers ignore SIGPIPE. gnuplot_finish() reports why a gnuplot has died early.
 */
#ifndef LEAKTOOLS_PLOT_GNUPLOT_H
#define LEAKTOOLS_PLOT_GNUPLOT_H

#include "plot/gnuplot/gnuplot_process.h"

#include <stdio.h>

struct gnuplot {
	struct gnuplot_process process;
	FILE *program; /* the script: gnuplot executes what is written here */
	int output_fd; /* standard output, in memory */
	int errors_fd; /* standard error, in memory */
};

/*
 * Starts gnuplot with default settings, without the user's start-up files. Returns 0, or a negative
 * errno after reporting it; do not call gnuplot_finish() then.
 */
int gnuplot_start(struct gnuplot *gnuplot, enum gnuplot_group group);

/*
 * Ends the script and waits for gnuplot. Returns 0, or a negative errno after reporting gnuplot's
 * error message. After 0, call gnuplot_take_output().
 */
int gnuplot_wait(struct gnuplot *gnuplot);

/*
 * Copies gnuplot's output to @output_fd, if that is not negative, and drops it. Returns 0, or a
 * negative errno after reporting it.
 */
int gnuplot_take_output(struct gnuplot *gnuplot, int output_fd);

/* Both: gnuplot_wait(), and if gnuplot succeeded, gnuplot_take_output(). */
int gnuplot_finish(struct gnuplot *gnuplot, int output_fd);

/*
 * The qt terminal opens windows in a separate process. If that finds no display, gnuplot waits
 * forever. Returns -ENODEV after reporting it if that has happened, else 0.
 */
int gnuplot_check_display(const struct gnuplot *gnuplot);

/*
 * Keeps the window with the last plot open until the user closes it or @signal_fd
 * (end_signals_open()) is readable. Then ends gnuplot. Returns 0, or a negative errno after
 * reporting it.
 */
int gnuplot_finish_window(struct gnuplot *gnuplot, int signal_fd);

/* Ends gnuplot at once and drops its output and messages. */
void gnuplot_stop(struct gnuplot *gnuplot);

/*
 * Gets the terminals of the installed gnuplot, as a string of names with a blank before and after
 * each. The caller frees it. Returns 0, or a negative errno after reporting it.
 */
int gnuplot_terminals(char **ret);

#endif
