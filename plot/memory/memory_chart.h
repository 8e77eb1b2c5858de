/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gnuplot program that draws a memory_history. */
#ifndef LEAKTOOLS_PLOT_MEMORY_CHART_H
#define LEAKTOOLS_PLOT_MEMORY_CHART_H

#include "plot/memory/memory_history.h"
#include "plot/gnuplot/plot_script.h"

#include <stdio.h>

/* Sets up the output and what stays the same from one drawing to the next. */
void memory_chart_begin(const struct plot_output *output, FILE *program);

/*
 * Draws @history, of process @name with @pid. memory_chart_begin() must have been written; it can
 * be drawn again and again.
 */
void memory_chart_draw(struct plot_script *script, const struct memory_history *history,
		       const char *name, pid_t pid);

#endif
