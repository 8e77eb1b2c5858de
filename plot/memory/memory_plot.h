/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process's memory against time, watched until the process exits, the window is closed or a
 * SIGINT, SIGTERM or SIGHUP arrives: in a window or the terminal as it happens, as a picture at the
 * end, or as columns of numbers.
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
 * Watches and plots. The caller is single-threaded: the signals that end it are blocked meanwhile.
 * Returns 0, or a negative errno after reporting it.
 */
int memory_plot_run(const struct memory_plot_options *options);

#endif
