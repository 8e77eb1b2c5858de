/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the gnuplot script that draws a memory_history. */
#ifndef LEAKTOOLS_PLOT_MEMORY_CHART_H
#define LEAKTOOLS_PLOT_MEMORY_CHART_H

#include "plot/gnuplot/plot_script.h"
#include "plot/memory/memory_history.h"

#include <stdio.h>

/* Writes the commands that all drawings share. */
void memory_chart_begin(const struct plot_output *output, FILE *program);

/*
 * Draws the @history of process @name with @pid, after memory_chart_begin(). It can be called
 * repeatedly.
 */
void memory_chart_draw(struct plot_script *script, const struct memory_history *history,
		       const char *name, pid_t pid);

#endif
