/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/plot_colours.h"

#include <string.h>

/* The share of the colour in the palest shade; the rest is white. */
#define PALEST 0.5
/* The brightness of the darkest shade. */
#define DARKEST 0.75

enum point_type {
	POINT_PLUS = 1,
	POINT_SQUARE = 5,
	POINT_CIRCLE_OPEN = 6,
	POINT_CIRCLE = 7,
	POINT_TRIANGLE = 9,
	POINT_TRIANGLE_DOWN = 11,
	POINT_DIAMOND = 13,
	POINT_PENTAGON = 15,
};

uint32_t plot_rank_colour(size_t rank)
{
	static const uint32_t colours[PLOT_RANKS] = {
		0xd55e00, 0x0072b2, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9,
	};

	return rank < PLOT_RANKS ? colours[rank] : PLOT_COLOUR_OTHERS;
}

int plot_rank_point(size_t rank)
{
	static const int points[PLOT_RANKS] = {
		POINT_CIRCLE, POINT_TRIANGLE,	   POINT_DIAMOND,
		POINT_SQUARE, POINT_TRIANGLE_DOWN, POINT_PENTAGON,
	};

	return rank < PLOT_RANKS ? points[rank] : PLOT_POINT_OTHERS;
}

static const struct plot_verdict_look looks[PLOT_NR_VERDICTS] = {
	[PLOT_GROWTH] = {"growth", "keep accumulating", 0xd55e00, POINT_CIRCLE},
	[PLOT_OVERDUE] = {"overdue", "held for too long", 0xe69f00, POINT_TRIANGLE},
	[PLOT_BURST] = {"burst", "allocated all at once and kept", 0xcc79a7, POINT_DIAMOND},
	[PLOT_UNCLEAR] = {"unclear", "too few or too recent to tell", 0x000000, POINT_SQUARE},
	[PLOT_PLATEAU] = {"plateau", "grew for a while, then stopped", 0x0072b2,
			  POINT_TRIANGLE_DOWN},
	[PLOT_STARTUP] = {"start-up", "allocated at the start and kept", 0x56b4e9, POINT_PENTAGON},
	[PLOT_NOT_YET] = {"not-yet", "not older than usual", 0x009e73, POINT_CIRCLE_OPEN},
	[PLOT_AT_EXIT] = {"at-exit", "held by a process that exited early", 0xb0b0b0, POINT_PLUS},
	[PLOT_NO_VERDICT] = {"no verdict", "", PLOT_COLOUR_OTHERS, PLOT_POINT_OTHERS},
};

enum plot_verdict plot_verdict_find(const char *name)
{
	enum plot_verdict verdict = 0;

	while (verdict < PLOT_NO_VERDICT && (!name || strcmp(name, looks[verdict].name) != 0))
		verdict++;
	return verdict;
}

const struct plot_verdict_look *plot_verdict_look(enum plot_verdict verdict)
{
	return &looks[verdict];
}

uint32_t plot_shade(uint32_t colour, size_t step, size_t steps)
{
	double share = steps > 1 ? (double)step / (double)(steps - 1) : 1;
	/* The first four fifths of the steps become less pale, the others darker. */
	double hue = share < 0.8 ? PALEST + (1 - PALEST) * share / 0.8 : 1;
	double light = share < 0.8 ? 1 : 1 - (1 - DARKEST) * (share - 0.8) / 0.2;
	uint32_t shade = 0;

	for (int shift = 16; shift >= 0; shift -= 8) {
		double part = (double)(colour >> shift & 0xff);

		shade |= (uint32_t)((255 - (255 - part) * hue) * light + 0.5) << shift;
	}
	return shade;
}
