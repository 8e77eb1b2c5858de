/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The view on the terminal: what is drawn, of what the viewer knows. It fits any size from 20x5 on.
 */
#ifndef LEAKTOOLS_TOP_TOP_SCREEN_H
#define LEAKTOOLS_TOP_TOP_SCREEN_H

#include "top/top_names.h"
#include "top/top_rows.h"

#define TOP_FILTER_BYTES  64
#define TOP_MESSAGE_BYTES 256
#define TOP_NO_ROW	  UINT32_MAX

struct top_screen {
	const char *title; /* what is recorded */
	const struct top_rows *rows;
	const struct top_names *names;
	const uint32_t *shown; /* indices of rows, in order */
	size_t nr_shown;
	enum top_order order;
	uint32_t selected;    /* a row; TOP_NO_ROW: none */
	bool is_chosen;	      /* by the user; else it is always the first */
	const bool *expanded; /* by row */
	size_t first;	      /* of the shown rows, the uppermost on the screen */
	size_t page;	      /* lines for rows; set by drawing */
	char filter[TOP_FILTER_BYTES];
	bool is_editing; /* the filter */
	bool is_frozen, is_ending;
	char message[TOP_MESSAGE_BYTES]; /* the last one */
	double seconds, events_per_s;
	uint64_t events, lost, pauses, paused_ns, marks;
};

/* Begins to use the terminal, and gives it back. Returns 0, or -ENOTTY if it can't be used. */
int top_screen_open(void);
void top_screen_close(void);

void top_screen_draw(struct top_screen *screen);

const char *top_order_name(enum top_order order);

#endif
