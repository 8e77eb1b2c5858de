/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of leakrec --top: growth, marks, sorting. */
#include "top/top_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000ULL

static struct site site(uint32_t stack, uint64_t allocations, uint64_t frees, uint64_t held)
{
	return (struct site){
		.stack_id = stack,
		.allocations = allocations,
		.frees = frees,
		.held_bytes = held,
	};
}

static void growth_covers_the_last_seconds(void **state)
{
	struct top_rows rows = {0};

	for (uint64_t second = 0; second <= 30; second++) {
		/* It grows by 100 bytes per second until the twentieth second. */
		struct site one = site(7, second + 1, 0, (second < 20 ? second : 20) * 100);

		assert_int_equal(top_rows_update(&rows, &one, 1, (100 + second) * S), 0);
		if (second > 0 && second <= 20)
			assert_int_equal(rows.rows[0].bytes_per_s, 100);
		if (second == 25)
			assert_in_range(rows.rows[0].bytes_per_s, 40, 60);
	}
	assert_int_equal(rows.rows[0].bytes_per_s, 0);
	assert_int_equal(rows.bytes_per_s, 0);
	assert_int_equal(rows.held_bytes, 2000);
	assert_int_equal(rows.held_blocks, 31);
	top_rows_deinit(&rows);
}

static void changes_count_from_the_mark(void **state)
{
	struct site sites[] = {site(1, 1, 0, 500), site(2, 4, 1, 300), site(3, 1, 0, 50)};
	struct top_rows rows = {0};

	assert_int_equal(top_rows_update(&rows, sites, 2, S), 0);
	assert_false(rows.is_marked);
	top_rows_mark(&rows);
	sites[0].held_bytes = 400;
	sites[1].held_bytes = 1000;
	assert_int_equal(top_rows_update(&rows, sites, 3, 2 * S), 0);
	assert_int_equal(rows.rows[0].since_mark, -100);
	assert_int_equal(rows.rows[1].since_mark, 700);
	assert_int_equal(rows.rows[1].held_blocks, 3);
	assert_int_equal(rows.rows[2].since_mark, 50);
	top_rows_deinit(&rows);
}

static bool is_not_the_second(void *context, size_t row)
{
	return row != 1;
}

static void rows_are_sorted(void **state)
{
	const struct site sites[] = {
		site(1, 10, 9, 100),
		site(2, 5, 0, 300),
		site(3, 7, 4, 300),
		site(4, 1, 0, 0),
	};
	static const uint32_t held[] = {1, 2, 0, 3}, blocks[] = {1, 2, 0, 3},
			      allocations[] = {0, 2, 1, 3};
	struct top_rows rows = {0};
	uint32_t order[4];

	assert_int_equal(top_rows_update(&rows, sites, 4, S), 0);
	assert_int_equal(top_rows_sort(&rows, TOP_BY_HELD, NULL, NULL, order), 4);
	assert_memory_equal(order, held, sizeof(held));
	assert_int_equal(top_rows_sort(&rows, TOP_BY_BLOCKS, NULL, NULL, order), 4);
	assert_memory_equal(order, blocks, sizeof(blocks));
	assert_int_equal(top_rows_sort(&rows, TOP_BY_ALLOCATIONS, NULL, NULL, order), 4);
	assert_memory_equal(order, allocations, sizeof(allocations));
	assert_int_equal(top_rows_sort(&rows, TOP_BY_HELD, is_not_the_second, NULL, order), 3);
	assert_int_equal(order[0], 2);
	top_rows_deinit(&rows);
}

static void any_numbers_and_many_rows(void **state)
{
	const size_t nr = 100000;
	struct site *sites = calloc(nr, sizeof(*sites));
	uint32_t *order = calloc(nr, sizeof(*order));
	struct top_rows rows = {0};

	assert_true(sites && order);
	for (size_t i = 0; i < nr; i++)
		sites[i] = site((uint32_t)i, i, i % 3 ? 0 : UINT64_MAX, i % 2 ? UINT64_MAX : i);
	assert_int_equal(top_rows_update(&rows, sites, 1, S), 0);
	assert_int_equal(top_rows_update(&rows, sites, nr, S), 0);
	assert_int_equal(top_rows_update(&rows, sites, nr, 20 * S), 0);
	assert_int_equal(top_rows_sort(&rows, TOP_BY_GROWTH, NULL, NULL, order), nr);
	for (size_t i = 1; i < nr; i++)
		assert_true(rows.rows[order[i - 1]].bytes_per_s >= rows.rows[order[i]].bytes_per_s);
	top_rows_deinit(&rows);
	free(sites);
	free(order);
}

static void bars_show_what_was_held(void **state)
{
	/* Periods of 1024 ns: nothing, then one more block each, then all but one released. */
	struct site_history history = {.shift = 10};
	struct site one = {.history = &history};
	static const uint16_t expected[TOP_BARS] = {0, 166, 333, 500, 666, 833, 1000, 166};
	uint16_t bars[TOP_BARS];

	for (size_t i = 1; i < 7; i++)
		history.periods[i].allocated = 1;
	history.periods[7].ended = 5;
	assert_true(held_bars(&one, 5000, 5000 + 8 * 1024 - 1, bars, TOP_BARS));
	assert_memory_equal(bars, expected, sizeof(bars));
	assert_string_equal(held_bar_text(0, true), " ");
	assert_string_equal(held_bar_text(1, true), "▁");
	assert_string_equal(held_bar_text(1000, true), "█");
	assert_string_equal(held_bar_text(0, false), ".");
	assert_string_equal(held_bar_text(1000, false), "9");
	/* One block of a million is not nothing; a recording may end before it begins. */
	history.periods[0].allocated = 1;
	history.periods[7].allocated = 1000000;
	assert_true(held_bars(&one, 5000, 5000 + 8 * 1024 - 1, bars, TOP_BARS));
	assert_int_equal(bars[0], 1);
	assert_false(held_bars(&one, 5000, 4000, bars, TOP_BARS));
	assert_true(held_bars(&one, 0, UINT64_MAX, bars, TOP_BARS));
	assert_false(held_bars(&(struct site){0}, 0, 1, bars, TOP_BARS));
}

static void orders_need_what_they_show(void **state)
{
	struct top_rows rows = {0};

	assert_int_equal(top_rows_next_order(&rows, TOP_BY_HELD), TOP_BY_GROWTH);
	assert_int_equal(top_rows_next_order(&rows, TOP_BY_GROWTH), TOP_BY_BLOCKS);
	assert_int_equal(top_rows_next_order(&rows, TOP_BY_ALLOCATIONS), TOP_BY_HELD);
	top_rows_mark(&rows);
	assert_int_equal(top_rows_next_order(&rows, TOP_BY_GROWTH), TOP_BY_MARK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_covers_the_last_seconds),
		cmocka_unit_test(changes_count_from_the_mark),
		cmocka_unit_test(rows_are_sorted),
		cmocka_unit_test(any_numbers_and_many_rows),
		cmocka_unit_test(bars_show_what_was_held),
		cmocka_unit_test(orders_need_what_they_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
