/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a stack or a cause in a legend. */
#ifndef LEAKTOOLS_PLOT_LEAK_LABEL_H
#define LEAKTOOLS_PLOT_LEAK_LABEL_H

#include "plot/leaks/leak_set.h"

/*
 * "_XQueryFont <- XQueryFont", "load_index <- main (500 stacks)", at most about @max_chars
 * characters. No two texts of @legend, which has @nr groups, at most PLOT_RANKS, are equal: those
 * that would be have their numbers. The text is escaped for plot_output_print_escaped(). The caller
 * frees it; NULL if memory is exhausted.
 */
char *leak_label_text(const struct leak_group *group, const struct leak_group *const *legend,
		      size_t nr, size_t max_chars);

#endif
