/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which columns fit on the screen, and where. No I/O. */
#ifndef LEAKTOOLS_TOP_TOP_LAYOUT_H
#define LEAKTOOLS_TOP_TOP_LAYOUT_H

#include "top/top_rows.h"

/* From left to right; the stack is right of them, on what is left of the line. */
enum top_column {
	TOP_COLUMN_HELD,
	TOP_COLUMN_BLOCKS,
	TOP_COLUMN_ALLOCATIONS,
	TOP_COLUMN_GROWTH,
	TOP_COLUMN_MARK, /* change since the mark */
	TOP_COLUMN_TREND,
	TOP_COLUMN_SOURCE,
	TOP_NR_COLUMNS,
};

struct top_layout {
	int x[TOP_NR_COLUMNS];	   /* where the column begins */
	int width[TOP_NR_COLUMNS]; /* 0: it is not shown */
	int stack_x;
};

/* The title of a column, as "HELD". */
const char *top_column_title(enum top_column column);

/* The column that shows what rows are sorted by. */
enum top_column top_column_of(enum top_order order);

/*
 * Chooses columns for a line of @width characters. The one that rows are sorted by is always shown;
 * of the others, the most important ones that leave room for the stack.
 */
struct top_layout top_layout_choose(int width, enum top_order order, bool is_marked);

#endif
