/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes between marks: where they count, and where intervals end. */
#include "parser/analysis/intervals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_INTERVALS 8
#define MAX_CHANGES   8

/* The reported intervals. */
static struct interval list[MAX_INTERVALS];
static struct interval_change changes[MAX_INTERVALS][MAX_CHANGES];
static char texts[MAX_INTERVALS][2][PROBE_TEXT_BYTES]; /* of the marks at both ends */
static size_t nr_intervals;

static void on_interval(void *context, const struct interval *interval)
{
	assert_true(nr_intervals < MAX_INTERVALS && interval->nr_changes <= MAX_CHANGES);
	list[nr_intervals] = *interval;
	for (size_t i = 0; i < interval->nr_changes; i++)
		changes[nr_intervals][i] = interval->changes[i];
	list[nr_intervals].changes = changes[nr_intervals];
	snprintf(texts[nr_intervals][0], PROBE_TEXT_BYTES, "%s",
		 interval->begin_mark.text ? interval->begin_mark.text : "");
	snprintf(texts[nr_intervals][1], PROBE_TEXT_BYTES, "%s",
		 interval->end_mark.text ? interval->end_mark.text : "");
	nr_intervals++;
}

static int setup(void **state)
{
	const struct interval_observer observer = {.on_interval = on_interval};

	nr_intervals = 0;
	*state = intervals_create(&observer);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	intervals_destroy(*state);
	return 0;
}

/* A block of stack @stack begins or ends at @time_ns. */
static void change(struct intervals *intervals, bool enters, uint32_t stack, uint64_t bytes,
		   uint64_t time_ns)
{
	struct heap_change change = {
		.enters = enters,
		.block = {.size_bytes = bytes, .size_known = true, .allocated.stack_id = stack},
		.op = {.time_ns = time_ns, .stack_id = 99},
	};

	intervals_change(intervals, &change);
}

static void mark(struct intervals *intervals, uint64_t time_ns, uint64_t number)
{
	intervals_mark(intervals, time_ns, &(struct interval_mark){.number = number});
}

static void mark_text(struct intervals *intervals, uint64_t time_ns, const char *text)
{
	char passing[PROBE_TEXT_BYTES];

	snprintf(passing, sizeof(passing), "%s", text);
	intervals_mark(intervals, time_ns, &(struct interval_mark){.text = passing});
	memset(passing, 'x', sizeof(passing) - 1);
}

static void finish(struct intervals *intervals, uint64_t end_ns, size_t nr)
{
	assert_int_equal(intervals_finish(intervals, end_ns), 0);
	assert_int_equal(nr_intervals, nr);
}

static void assert_change(const struct interval *interval, size_t index, uint32_t stack,
			  int64_t bytes, int64_t blocks)
{
	assert_true(index < interval->nr_changes);
	assert_int_equal(interval->changes[index].stack_id, stack);
	assert_int_equal(interval->changes[index].bytes, bytes);
	assert_int_equal(interval->changes[index].blocks, blocks);
}

static void what_leaks_is_largest_and_what_cancels_is_gone(void **state)
{
	intervals_begin(*state, 100);
	change(*state, true, 1, 64, 100);
	change(*state, true, 2, 5000, 101);
	change(*state, true, 3, 10, 102);
	change(*state, false, 1, 64, 103);
	finish(*state, 200, 1);
	assert_int_equal(list[0].nr_changes, 2);
	assert_change(&list[0], 0, 2, 5000, 1);
	assert_change(&list[0], 1, 3, 10, 1);
	assert_int_equal(list[0].bytes, 5010);
	assert_int_equal(list[0].blocks, 2);
	assert_int_equal(list[0].end_ns, 200);
}

static void a_free_counts_for_who_allocated_in_the_interval_of_the_free(void **state)
{
	intervals_begin(*state, 100);
	change(*state, true, 1, 64, 110);
	mark(*state, 150, 1);
	change(*state, false, 1, 64, 150);
	change(*state, true, 2, 8, 160);
	finish(*state, 200, 2);
	assert_int_equal(list[0].end_mark.number, 1);
	assert_int_equal(list[1].begin_mark.number, 1);
	assert_int_equal(list[1].begin_ns, 150);
	assert_change(&list[0], 0, 1, 64, 1);
	assert_change(&list[1], 0, 2, 8, 1);
	assert_change(&list[1], 1, 1, -64, -1);
}

/* A mark's text is valid only during the call. */
static void marks_have_texts(void **state)
{
	mark_text(*state, 50, "before");
	intervals_begin(*state, 100);
	change(*state, true, 1, 64, 145);
	mark_text(*state, 150, "first");
	change(*state, true, 1, 64, 155);
	mark(*state, 160, 1);
	finish(*state, 200, 3);
	assert_string_equal(texts[0][0], "before");
	assert_string_equal(texts[0][1], "first");
	assert_string_equal(texts[1][0], "first");
	assert_string_equal(texts[1][1], "");
	assert_int_equal(list[1].end_mark.number, 1);
	assert_string_equal(texts[2][0], "");
}

/* Its interval is over and was reported. */
static void a_late_change_counts_in_the_next_interval(void **state)
{
	intervals_begin(*state, 100);
	mark(*state, 150, 1);
	assert_int_equal(nr_intervals, 1);
	change(*state, true, 1, 64, 149);
	finish(*state, 200, 2);
	assert_int_equal(list[0].nr_changes, 0);
	assert_change(&list[1], 0, 1, 64, 1);
}

static void marks_out_of_order_and_before_the_start_do_no_harm(void **state)
{
	mark(*state, 50, 7);
	intervals_begin(*state, 100);
	change(*state, true, 1, 64, 145);
	mark(*state, 150, 8);
	mark(*state, 140, 9);
	change(*state, true, 2, 64, 155);
	finish(*state, 200, 3);
	assert_int_equal(list[0].begin_mark.number, 7);
	assert_change(&list[0], 0, 1, 64, 1);
	assert_int_equal(list[1].begin_ns, 150);
	assert_int_equal(list[1].end_ns, 150);
	assert_int_equal(list[1].nr_changes, 0);
	assert_change(&list[2], 0, 2, 64, 1);
}

/* A long time without changes is one interval. */
static void intervals_of_a_length(void **state)
{
	intervals_set_length(*state, 10);
	intervals_begin(*state, 100);
	change(*state, true, 1, 64, 100);
	change(*state, true, 1, 64, 109);
	assert_int_equal(nr_intervals, 0);
	change(*state, false, 1, 64, 110);
	assert_int_equal(nr_intervals, 1);
	change(*state, true, 2, 64, 1000005);
	assert_int_equal(nr_intervals, 3);
	mark(*state, 1000006, 1);
	finish(*state, 1000009, 4);
	assert_change(&list[0], 0, 1, 128, 2);
	assert_int_equal(list[0].end_ns, 110);
	assert_change(&list[1], 0, 1, -64, -1);
	assert_int_equal(list[2].nr_changes, 0);
	assert_int_equal(list[2].begin_ns, 120);
	assert_int_equal(list[2].end_ns, 1000000);
	assert_change(&list[3], 0, 2, 64, 1);
	assert_int_equal(list[3].end_ns, 1000009);
}

static void a_range_takes_the_place_of_marks(void **state)
{
	intervals_set_range(*state, 10, 20);
	intervals_begin(*state, 100);
	mark(*state, 115, 1);
	change(*state, true, 1, 64, 109);
	change(*state, true, 2, 64, 110);
	change(*state, true, 3, 32, 119);
	change(*state, true, 4, 64, 120);
	finish(*state, 200, 1);
	assert_int_equal(list[0].begin_ns, 110);
	assert_int_equal(list[0].end_ns, 120);
	assert_int_equal(list[0].nr_changes, 2);
	assert_change(&list[0], 0, 2, 64, 1);
	assert_change(&list[0], 1, 3, 32, 1);
}

static void a_recording_without_events_has_no_interval(void **state)
{
	finish(*state, 0, 0);
}

static void sizes_out_of_all_proportion_do_no_harm(void **state)
{
	intervals_begin(*state, 100);
	change(*state, true, 1, UINT64_MAX, 100);
	change(*state, false, 1, 1ULL << 63, 100);
	finish(*state, UINT64_MAX, 1);
	assert_int_equal(list[0].nr_changes, 1);
	assert_change(&list[0], 0, 1, INT64_MAX, 0);
}

static void times_out_of_all_proportion_do_no_harm(void **state)
{
	intervals_set_length(*state, 1000);
	intervals_begin(*state, UINT64_MAX - 10);
	change(*state, true, 1, 64, UINT64_MAX);
	change(*state, true, 1, 64, UINT64_MAX);
	finish(*state, UINT64_MAX, 1);
	assert_change(&list[0], 0, 1, 128, 2);
}

#define INTERVALS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		INTERVALS_TEST(what_leaks_is_largest_and_what_cancels_is_gone),
		INTERVALS_TEST(a_free_counts_for_who_allocated_in_the_interval_of_the_free),
		INTERVALS_TEST(marks_have_texts),
		INTERVALS_TEST(a_late_change_counts_in_the_next_interval),
		INTERVALS_TEST(marks_out_of_order_and_before_the_start_do_no_harm),
		INTERVALS_TEST(intervals_of_a_length),
		INTERVALS_TEST(a_range_takes_the_place_of_marks),
		INTERVALS_TEST(a_recording_without_events_has_no_interval),
		INTERVALS_TEST(sizes_out_of_all_proportion_do_no_harm),
		INTERVALS_TEST(times_out_of_all_proportion_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
