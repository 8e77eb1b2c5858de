/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all plots of a `leaks` file say above the picture: of whom it is, and what it lacks. */
#ifndef LEAKTOOLS_PLOT_LEAK_TITLE_H
#define LEAKTOOLS_PLOT_LEAK_TITLE_H

#include "plot/leaks/leak_set.h"
#include "plot/gnuplot/plot_script.h"

/* ", in emacs, python3 (PID 4165)" */
void leak_title_print_origin(FILE *out, const struct leak_set *set);

/*
 * What makes the picture less than the whole truth: lost events and the like; often nothing.
 * @has_sizes: it has no place for leaks of unknown size.
 */
void leak_title_print_caveats(FILE *out, const struct leak_set *set, bool has_sizes);

/* The same as a string that the caller frees; NULL: out of memory. */
char *leak_title_caveats(const struct leak_set *set, bool has_sizes);

/* "set title"; @caveats may be empty. */
void leak_title_write(const struct plot_script *script, const char *headline, const char *caveats);

#endif
