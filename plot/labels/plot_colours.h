/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The colours of all plots: those of Okabe and Ito, which colour-blind people tell apart, and which
 * differ in lightness, so that a grey print still shows something. As 0xRRGGBB.
 */
#ifndef LEAKTOOLS_PLOT_PLOT_COLOURS_H
#define LEAKTOOLS_PLOT_PLOT_COLOURS_H

#include <stddef.h>
#include <stdint.h>

#define PLOT_RANKS 6

/* What leads a ranking has the first colour; what is beyond the last rank PLOT_COLOUR_OTHERS. */
uint32_t plot_rank_colour(size_t rank);

#define PLOT_COLOUR_OTHERS 0x8a8a8aU
#define PLOT_COLOUR_GRID   0xe4e4e4U

/* leakparse's verdicts, those that ask for action first. */
enum plot_verdict {
	PLOT_GROWTH,
	PLOT_OVERDUE,
	PLOT_BURST,
	PLOT_UNCLEAR,
	PLOT_PLATEAU,
	PLOT_STARTUP,
	PLOT_NOT_YET,
	PLOT_AT_EXIT,
	PLOT_NO_VERDICT, /* older files have none, later ones perhaps others */
	PLOT_NR_VERDICTS,
};

/* @name may be NULL. */
enum plot_verdict plot_verdict_find(const char *name);

struct plot_verdict_look {
	const char *name;
	const char *meaning; /* a few words for the legend */
	uint32_t colour;
	int point_type; /* gnuplot's; shapes differ, too, where it matters most */
};

const struct plot_verdict_look *plot_verdict_look(enum plot_verdict verdict);

/* @colour in one of @steps shades: 0 is pale, @steps - 1 a little darker than @colour itself. */
uint32_t plot_shade(uint32_t colour, size_t step, size_t steps);

#endif
