/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The colours of all plots, as 0xRRGGBB. They are those of Okabe and Ito, which colour-blind people
 * can tell apart and which differ in lightness for grey prints.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_COLOURS_H
#define LEAKTOOLS_PLOT_PLOT_COLOURS_H

#include <stddef.h>
#include <stdint.h>

#define PLOT_RANKS 6

/* The colour of a rank, counted from 0; PLOT_COLOUR_OTHERS beyond the last rank. */
uint32_t plot_rank_colour(size_t rank);

/* The shape of its points, so that colours are not all that tells ranks apart: gnuplot's number. */
int plot_rank_point(size_t rank);

#define PLOT_COLOUR_OTHERS 0x8a8a8aU
#define PLOT_POINT_OTHERS  2 /* a cross */

/* leakparse's verdicts, the most urgent first. */
enum plot_verdict {
	PLOT_GROWTH,
	PLOT_OVERDUE,
	PLOT_BURST,
	PLOT_UNCLEAR,
	PLOT_PLATEAU,
	PLOT_STARTUP,
	PLOT_NOT_YET,
	PLOT_AT_EXIT,
	PLOT_NO_VERDICT, /* none, or unknown to this version */
	PLOT_NR_VERDICTS,
};

/* Returns PLOT_NO_VERDICT for NULL and unknown names. */
enum plot_verdict plot_verdict_find(const char *name);

struct plot_verdict_look {
	const char *name;
	const char *meaning; /* a few words for the legend */
	uint32_t colour;
	int point_type; /* gnuplot's; verdicts differ in shape, too */
};

const struct plot_verdict_look *plot_verdict_look(enum plot_verdict verdict);

/* One of @steps shades of @colour: 0 is pale, @steps - 1 a little darker than @colour. */
uint32_t plot_shade(uint32_t colour, size_t step, size_t steps);

#endif
