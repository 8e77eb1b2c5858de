/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/row_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NR_ROWS 20000u

/* Rows that differ in one number only, and extreme numbers. */
static struct row make_row(uint32_t i)
{
	struct row row = {{i / 3, i % 3 == 1 ? UINT32_MAX : 7, i % 3 == 2 ? i : 0}};

	return row;
}

static void test_equal_rows_are_one(void **state)
{
	struct row_set set = {0};
	uint32_t number;

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < NR_ROWS; i++) {
			assert_int_equal(row_set_add(&set, make_row(i), &number), 0);
			assert_int_equal(number, i);
		}
	}
	assert_int_equal(set.nr, NR_ROWS);
	for (uint32_t i = 0; i < NR_ROWS; i++) {
		struct row row = make_row(i);

		assert_memory_equal(&set.rows[i], &row, sizeof(row));
	}
	row_set_deinit(&set);
}

static void test_empty(void **state)
{
	struct row_set set = {0};

	row_set_deinit(&set);
	assert_int_equal(set.nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_rows_are_one),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
