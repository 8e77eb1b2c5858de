/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_layout.h"

#define MARGIN 1 /* for the mark of the selected row */
/* Of the stack: at least, and before columns that only wide screens have. */
#define MIN_STACK  9
#define FAIR_STACK 24
#define WIDE_STACK 40

static const struct {
	const char *title;
	int width;	/* of the text; a blank follows it */
	int stack;	/* the column is shown if the stack then has that much room */
	int importance; /* the higher ones are chosen first */
} columns[TOP_NR_COLUMNS] = {
	[TOP_COLUMN_HELD] = {"HELD", 9, MIN_STACK, 6},
	[TOP_COLUMN_BLOCKS] = {"BLOCKS", 8, FAIR_STACK, 4},
	[TOP_COLUMN_ALLOCATIONS] = {"ALLOCATIONS", 11, WIDE_STACK, 0},
	[TOP_COLUMN_GROWTH] = {"PER S", 10, FAIR_STACK, 5},
	[TOP_COLUMN_MARK] = {"SINCE MARK", 10, FAIR_STACK, 2},
	[TOP_COLUMN_TREND] = {"TREND", TOP_BARS, FAIR_STACK, 3},
	[TOP_COLUMN_SOURCE] = {"SOURCE", 24, WIDE_STACK, 1},
};

const char *top_column_title(enum top_column column)
{
	return columns[column].title;
}

enum top_column top_column_of(enum top_order order)
{
	static const enum top_column of[TOP_NR_ORDERS] = {
		[TOP_BY_HELD] = TOP_COLUMN_HELD,
		[TOP_BY_GROWTH] = TOP_COLUMN_GROWTH,
		[TOP_BY_MARK] = TOP_COLUMN_MARK,
		[TOP_BY_BLOCKS] = TOP_COLUMN_BLOCKS,
		[TOP_BY_ALLOCATIONS] = TOP_COLUMN_ALLOCATIONS,
	};

	return of[order];
}

struct top_layout top_layout_choose(int width, enum top_order order, bool is_marked)
{
	enum top_column sorted = top_column_of(order);
	int left = width - MARGIN - columns[sorted].width - 1, x = MARGIN;
	struct top_layout layout = {0};

	layout.width[sorted] = columns[sorted].width;
	for (int importance = TOP_NR_COLUMNS; importance-- > 0;) {
		for (size_t i = 0; i < TOP_NR_COLUMNS; i++) {
			int room = left - columns[i].width - 1;

			if (columns[i].importance != importance || i == sorted ||
			    room < columns[i].stack || (i == TOP_COLUMN_MARK && !is_marked))
				continue;
			layout.width[i] = columns[i].width;
			left = room;
		}
	}
	for (size_t i = 0; i < TOP_NR_COLUMNS; i++) {
		layout.x[i] = x;
		x += layout.width[i] ? layout.width[i] + 1 : 0;
	}
	layout.stack_x = x;
	return layout;
}
