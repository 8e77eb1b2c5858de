/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/loss_windows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct loss_windows *windows;

static int setup(void **state)
{
	windows = loss_windows_create();
	return windows ? 0 : -1;
}

static int teardown(void **state)
{
	loss_windows_destroy(windows);
	return 0;
}

static void check_windows(const struct loss_window *expected, size_t nr_expected)
{
	size_t nr;
	const struct loss_window *list = loss_windows_list(windows, &nr);

	assert_int_equal(nr, nr_expected);
	for (size_t i = 0; i < nr_expected; i++) {
		assert_int_equal(list[i].start_ns, expected[i].start_ns);
		assert_int_equal(list[i].end_ns, expected[i].end_ns);
		assert_int_equal(list[i].lost, expected[i].lost);
	}
}

#define CHECK(...)                                                                                 \
	check_windows((const struct loss_window[]){__VA_ARGS__},                                   \
		      sizeof((const struct loss_window[]){__VA_ARGS__}) /                          \
			      sizeof(struct loss_window))

static void none(void **state)
{
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 10);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 20, 0);
	check_windows(NULL, 0);
}

static void from_the_record_before(void **state)
{
	loss_windows_note(windows, LOSS_RING_PROBES, 3, 10);
	loss_windows_note(windows, LOSS_RING_PROBES, 2, 15); /* another CPU */
	loss_windows_note(windows, LOSS_RING_OTHERS, 3, 16); /* another ring */
	loss_windows_note(windows, LOSS_RING_PROBES, 3, 0);  /* no time */
	loss_windows_add(windows, LOSS_RING_PROBES, 3, 20, 5);
	loss_windows_note(windows, LOSS_RING_PROBES, 3, 30);
	loss_windows_add(windows, LOSS_RING_PROBES, 3, 40, 1);
	CHECK({10, 20, 5}, {30, 40, 1});
}

static void from_the_beginning_where_nothing_is_known(void **state)
{
	loss_windows_add(windows, LOSS_RING_PROBES, 1, 20, 1);
	CHECK({0, 20, 1});
	loss_windows_note(windows, LOSS_RING_PROBES, 1, 30);
	loss_windows_add(windows, LOSS_RING_PROBES, UINT32_MAX, 40, 2);
	CHECK({0, 40, 3});
	loss_windows_note(windows, LOSS_RING_PROBES, LOSS_MAX_CPUS, 50);
	loss_windows_add(windows, LOSS_RING_PROBES, LOSS_MAX_CPUS, 60, 4);
	CHECK({0, 60, 7});
}

static void joined_where_they_meet(void **state)
{
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 10);
	loss_windows_note(windows, LOSS_RING_PROBES, 1, 14);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 20, 1);
	loss_windows_add(windows, LOSS_RING_PROBES, 1, 22, 2); /* overlaps */
	CHECK({10, 22, 3});
	loss_windows_add(windows, LOSS_RING_PROBES, 1, 25, 4); /* touches */
	CHECK({10, 25, 7});
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 30);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 35, 8);
	loss_windows_add(windows, LOSS_RING_PROBES, 1, 40, 16); /* covers them all */
	CHECK({10, 40, 31});
}

static void overlap(void **state)
{
	assert_false(loss_windows_overlap(windows, 0, UINT64_MAX));
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 10);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 20, 1);
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 30);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 40, 1);
	assert_false(loss_windows_overlap(windows, 5, 10));
	assert_true(loss_windows_overlap(windows, 5, 11));
	assert_true(loss_windows_overlap(windows, 12, 13));
	assert_true(loss_windows_overlap(windows, 19, 25));
	assert_false(loss_windows_overlap(windows, 20, 30));
	assert_true(loss_windows_overlap(windows, 20, 31));
	assert_false(loss_windows_overlap(windows, 40, 50));
}

static void out_of_order(void **state)
{
	loss_windows_note(windows, LOSS_RING_PROBES, 0, 50);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 60, 1);
	loss_windows_add(windows, LOSS_RING_PROBES, 0, 30, 2);
	CHECK({0, 60, 3});
}

/*
 * Every loss stays inside a window, the list stays sorted and bounded, and distant windows stay
 * apart.
 */
static void of_many_the_closest_are_joined(void **state)
{
	const uint64_t nr_lost = 50000;
	const struct loss_window *list;
	uint64_t lost = 0, at = 0, last_ns = 1;
	size_t nr;
	bool apart = false;

	for (uint64_t i = 0; i < nr_lost; i++) {
		uint64_t start_ns = last_ns + (i == nr_lost / 2 ? 1000000 : 1 + i % 97);

		loss_windows_note(windows, LOSS_RING_PROBES, 0, start_ns);
		last_ns = start_ns + 2;
		loss_windows_add(windows, LOSS_RING_PROBES, 0, last_ns, 1);
		loss_windows_list(windows, &nr);
		assert_true(nr <= LOSS_MAX_WINDOWS);
	}
	list = loss_windows_list(windows, &nr);
	assert_true(nr > LOSS_MAX_WINDOWS / 4);
	for (size_t i = 0; i < nr; i++) {
		assert_true(list[i].start_ns >= at && list[i].end_ns > list[i].start_ns);
		apart |= i > 0 && list[i].start_ns - at >= 1000000;
		at = list[i].end_ns;
		lost += list[i].lost;
	}
	assert_int_equal(lost, nr_lost);
	assert_int_equal(at, last_ns);
	assert_true(apart);
}

static void of_many_as_close_pairs_are_joined(void **state)
{
	const struct loss_window *list;
	size_t nr;

	for (uint64_t i = 1; i <= LOSS_MAX_WINDOWS + 1; i++) {
		loss_windows_note(windows, LOSS_RING_PROBES, 0, 10 * i);
		loss_windows_add(windows, LOSS_RING_PROBES, 0, 10 * i + 5, 1);
	}
	list = loss_windows_list(windows, &nr);
	assert_int_equal(nr, LOSS_MAX_WINDOWS / 2 + 1);
	for (size_t i = 0; i < nr - 1; i++) {
		assert_int_equal(list[i].start_ns, 20 * i + 10);
		assert_int_equal(list[i].end_ns, 20 * i + 25);
		assert_int_equal(list[i].lost, 2);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(none),
		TEST(from_the_record_before),
		TEST(from_the_beginning_where_nothing_is_known),
		TEST(joined_where_they_meet),
		TEST(overlap),
		TEST(out_of_order),
		TEST(of_many_the_closest_are_joined),
		TEST(of_many_as_close_pairs_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
