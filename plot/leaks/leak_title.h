/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Titles of plots of a `leaks` file: the processes, and reasons to doubt the data. */
#ifndef LEAKTOOLS_PLOT_LEAK_TITLE_H
#define LEAKTOOLS_PLOT_LEAK_TITLE_H

#include "plot/gnuplot/plot_script.h"
#include "plot/leaks/leak_set.h"

/*
 * ", 10 look like leaks": not all that is held does. Nothing if the file is too old to tell, or if
 * by its verdict no block does, but a scan has found some lost.
 */
void leak_title_print_leaks(FILE *out, const struct leak_set *set);

/* ", in emacs, python3 (PID 4165)" */
void leak_title_print_origin(FILE *out, const struct leak_set *set);

/*
 * Prints reasons to doubt the data, such as lost events; often nothing. @has_sizes: the plot leaves
 * out leaks of unknown size.
 */
void leak_title_print_caveats(FILE *out, const struct leak_set *set, bool has_sizes);

/* The same as a string that the caller frees; NULL if memory is exhausted. */
char *leak_title_caveats(const struct leak_set *set, bool has_sizes);

/*
 * "50 proven lost, 40 still reachable, 7 not scanned": what a scan said of the points. Nothing if
 * it said nothing.
 */
void leak_title_print_reach(FILE *out, const struct leak_set *set);

/* ", 8 proven lost, 2 no holder found": of one stack. */
void leak_title_print_lost(FILE *out, uint64_t nr_lost, uint64_t nr_without_holder);

/* Writes "set title", of up to three lines. @reach and @caveats may be empty. */
void leak_title_write(const struct plot_script *script, const char *headline, const char *reach,
		      const char *caveats);

#endif
