/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Draws the view on the terminal. It fits any size from 20x5 characters.
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
	const uint32_t *shown; /* indices of rows, sorted */
	size_t nr_shown;
	enum top_order order;
	uint32_t selected;    /* index of a row; TOP_NO_ROW: none */
	bool is_chosen;	      /* by the user; else the first row is selected */
	const bool *expanded; /* by row */
	size_t first;	      /* index into @shown of the top row */
	size_t page;	      /* lines for rows; set by top_screen_draw() */
	char filter[TOP_FILTER_BYTES];
	bool is_editing; /* keys go to the filter */
	bool is_help;	 /* it covers the rows */
	bool is_utf8;	 /* what the terminal shows */
	bool is_recording, is_frozen, is_ending;
	char message[TOP_MESSAGE_BYTES]; /* the last one */
	double seconds, events_per_s;
	uint64_t events, lost, pauses, paused_ns, marks;
	bool may_miss; /* more may be lost than @lost */
};

/* Switches the terminal to the view, and back. Returns 0, or -ENOTTY if that is impossible. */
int top_screen_open(void);
void top_screen_close(void);

void top_screen_draw(struct top_screen *screen);

#endif
