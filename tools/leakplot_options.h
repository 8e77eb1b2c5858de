/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakplot's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKPLOT_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKPLOT_OPTIONS_H

#include "plot/pictures/history_plot.h"
#include "plot/pictures/leak_plot.h"
#include "plot/memory/memory_plot.h"

enum leakplot_action {
	LEAKPLOT_LEAKS,
	LEAKPLOT_HISTORY,
	LEAKPLOT_MEMORY,
};

struct leakplot_options {
	enum leakplot_action action;
	const char *output, *term;	/* unless LEAKPLOT_MEMORY: a picture, --term; or NULL */
	struct leak_plot_options leaks; /* if LEAKPLOT_LEAKS */
	struct history_plot_options history; /* if LEAKPLOT_HISTORY */
	struct memory_plot_options memory;   /* if LEAKPLOT_MEMORY */
};

/*
 * Parses @argv; the options point into it. Returns 0, 1 if --help or --version was answered, or
 * -EINVAL after reporting what is wrong with the usage.
 */
int leakplot_options_parse(int argc, char **argv, struct leakplot_options *ret);

#endif
