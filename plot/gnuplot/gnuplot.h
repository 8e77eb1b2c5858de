/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gnuplot process: started without a shell, given its program through a pipe. Its standard output
 * and its messages go to memory, so that gnuplot opens no file of the user's and a picture that
 * failed overwrites none.
 *
 * Callers ignore SIGPIPE: a gnuplot that dies early shows in gnuplot_finish(), with its reason.
 */
#ifndef LEAKTOOLS_PLOT_GNUPLOT_H
#define LEAKTOOLS_PLOT_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct gnuplot {
	pid_t pid;
	int pidfd;     /* readable once gnuplot has ended */
	FILE *program; /* what is written here, gnuplot executes */
	int output_fd; /* in memory: what gnuplot wrote to standard output */
	int errors_fd; /* in memory: what it wrote to standard error */
};

/*
 * Starts gnuplot with its default settings (no user's start-up files). @own_group keeps it from
 * receiving the terminal's Ctrl-C. Returns 0, or a negative errno after reporting it; then
 * gnuplot_finish() is not called.
 */
int gnuplot_start(struct gnuplot *gnuplot, bool own_group);

/*
 * Ends the program, waits for gnuplot and, if it succeeded and @output_fd is not negative, copies
 * its output there. Returns 0, or a negative errno after reporting it, with gnuplot's own reason.
 */
int gnuplot_finish(struct gnuplot *gnuplot, int output_fd);

/*
 * The qt terminal leaves the display to a process of its own; when that finds none, gnuplot waits
 * for a window that never comes. Returns 0, or -ENODEV after reporting it if that has happened.
 */
int gnuplot_check_display(const struct gnuplot *gnuplot);

/*
 * Leaves the user alone with the plot that was drawn last, until its window is closed or @signal_fd
 * (end_signals_open()) is readable, and ends gnuplot. Returns 0, or a negative errno after
 * reporting it.
 */
int gnuplot_finish_window(struct gnuplot *gnuplot, int signal_fd);

/* Ends a gnuplot that still runs, whatever it is doing; its output and messages are dropped. */
void gnuplot_stop(struct gnuplot *gnuplot);

/*
 * The names of the terminals that the installed gnuplot has, each with a blank before and after it,
 * in a string that the caller frees. Returns 0, or a negative errno after reporting it.
 */
int gnuplot_terminals(char **ret);

/*
 * Writes @text as a gnuplot string of at most @max_chars characters, which gnuplot takes literally.
 * It is in double quotes: gnuplot 5.4 ends a string in single quotes at a pair of them that begins
 * it or follows another pair. Control characters and invalid UTF-8 are shown as \xNN. What
 * gnuplot's enhanced text mode would make of it is turned off by plot_output.
 */
void gnuplot_print_string(FILE *program, const char *text, size_t max_chars);

#endif
