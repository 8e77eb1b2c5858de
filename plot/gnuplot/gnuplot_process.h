/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process of a gnuplot: how it starts and ends. gnuplot draws names that others chose, with
 * libraries for fonts and pictures. Run by root, it is nobody's, without capabilities, and can
 * signal or trace nobody; without a window it can also start no process and connect to nothing.
 */
#ifndef LEAKTOOLS_PLOT_GNUPLOT_PROCESS_H
#define LEAKTOOLS_PLOT_GNUPLOT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* gnuplot's descriptors. It reads its script as a file: see gnuplot_process.c. */
enum gnuplot_descriptor {
	GNUPLOT_OUTPUT = 1,
	GNUPLOT_ERRORS,
	GNUPLOT_SCRIPT,
	GNUPLOT_NR_DESCRIPTORS,
};

#define GNUPLOT_SCRIPT_FILE "/dev/fd/3"

enum gnuplot_group {
	GNUPLOT_OURS,	/* the terminal's Ctrl-C ends it */
	GNUPLOT_OWN,	/* Ctrl-C does not reach it */
	GNUPLOT_WINDOW, /* GNUPLOT_OWN, and it may show windows */
	GNUPLOT_NR_GROUPS,
};

struct gnuplot_process {
	pid_t pid;
	int pidfd; /* readable once it has ended */
};

/*
 * Starts gnuplot with copies of the descriptors @fds (those of GNUPLOT_OUTPUT and on; the first is
 * not used). Returns 0; or a negative errno, not reported, -ENOENT if gnuplot is not installed.
 */
int gnuplot_process_start(enum gnuplot_group group, const int fds[GNUPLOT_NR_DESCRIPTORS],
			  struct gnuplot_process *ret);

/*
 * Waits until it has ended; @stop: ends it first, and its windows. Returns its status, of wait(2),
 * or a negative errno, not reported.
 */
int gnuplot_process_end(struct gnuplot_process *process, bool stop);

#endif
