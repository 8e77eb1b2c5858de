/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of leakrec --top on screens of different widths. */
#include "top/top_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_layout(int width, enum top_order order, bool is_marked, unsigned int shown)
{
	struct top_layout layout = top_layout_choose(width, order, is_marked);
	int x = 1;

	for (enum top_column i = 0; i < TOP_NR_COLUMNS; i++) {
		assert_int_equal(layout.width[i] > 0, (shown >> i) & 1);
		assert_int_equal(layout.x[i], x);
		x += layout.width[i] ? layout.width[i] + 1 : 0;
	}
	assert_int_equal(layout.stack_x, x);
}

#define HELD	    (1u << TOP_COLUMN_HELD)
#define BLOCKS	    (1u << TOP_COLUMN_BLOCKS)
#define ALLOCATIONS (1u << TOP_COLUMN_ALLOCATIONS)
#define GROWTH	    (1u << TOP_COLUMN_GROWTH)
#define MARK	    (1u << TOP_COLUMN_MARK)
#define TREND	    (1u << TOP_COLUMN_TREND)
#define SOURCE	    (1u << TOP_COLUMN_SOURCE)

static void columns_fit(void **state)
{
	assert_layout(20, TOP_BY_HELD, false, HELD);
	assert_layout(40, TOP_BY_HELD, true, HELD);
	assert_layout(80, TOP_BY_HELD, false, HELD | BLOCKS | GROWTH | TREND);
	assert_layout(80, TOP_BY_HELD, true, HELD | BLOCKS | GROWTH | TREND | MARK);
	assert_layout(120, TOP_BY_HELD, false,
		      HELD | BLOCKS | GROWTH | TREND | SOURCE | ALLOCATIONS);
}

static void what_rows_are_sorted_by_is_shown(void **state)
{
	for (int width = 0; width < 200; width++) {
		for (enum top_order order = 0; order < TOP_NR_ORDERS; order++) {
			struct top_layout layout = top_layout_choose(width, order, true);

			assert_true(layout.width[top_column_of(order)]);
			/* The stack does not vanish. */
			if (width >= 20)
				assert_in_range(layout.stack_x, 1, width - 7);
		}
	}
	assert_layout(20, TOP_BY_GROWTH, false, GROWTH);
	assert_layout(80, TOP_BY_ALLOCATIONS, false, HELD | BLOCKS | GROWTH | TREND | ALLOCATIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_fit),
		cmocka_unit_test(what_rows_are_sorted_by_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
