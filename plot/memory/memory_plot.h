/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakplot --mem: plots the memory of a process over time, until it exits, the window is closed, or
 * SIGINT, SIGTERM or SIGHUP arrives. A window or terminal shows it live; a picture is drawn at the
 * end; without either, it prints columns of numbers.
 */
#ifndef LEAKTOOLS_PLOT_MEMORY_PLOT_H
#define LEAKTOOLS_PLOT_MEMORY_PLOT_H

#include <sys/types.h>

struct memory_plot_options {
	pid_t pid;
	unsigned int interval_ms;
	const char *output; /* a picture's path, or NULL */
	const char *term;   /* --term, or NULL */
	const char *save;   /* --save, or NULL */
};

/*
 * Runs until the end of the plot. The caller must be single-threaded, because this blocks signals.
 * Returns 0, or a negative errno after reporting it.
 */
int memory_plot_run(const struct memory_plot_options *options);

#endif
