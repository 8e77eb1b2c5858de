/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the intervals between marks are kept. */
#include "report/formats/mark_changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void allocate(struct mark_changes *changes, uint32_t stack, uint64_t bytes, uint64_t time_ns)
{
	const struct heap_change change = {
		.enters = true,
		.block = {.size_bytes = bytes, .size_known = true, .allocated.stack_id = stack},
		.op = {.time_ns = time_ns},
	};

	mark_changes_change(changes, &change);
}

static void mark(struct mark_changes *changes, uint64_t number, const char *text, uint64_t time_ns)
{
	intervals_mark(changes->intervals, time_ns, &(struct interval_mark){number, text});
}

static void marks_have_names(void **state)
{
	const struct size_range size = {10, 20};
	struct mark_changes changes;
	char text[] = "request";

	assert_int_equal(mark_changes_init(&changes, &size), 0);
	allocate(&changes, 3, 16, 100);
	allocate(&changes, 4, 8, 110);
	mark(&changes, 7, NULL, 200);
	allocate(&changes, 5, 20, 250);
	mark(&changes, 0, text, 300);
	memset(text, '?', sizeof(text) - 1);
	assert_int_equal(mark_changes_finish(&changes, 400), 0);
	assert_int_equal(changes.nr, 3);
	assert_null(changes.list[0].begin);
	assert_string_equal(changes.list[0].end, "mark-7");
	assert_int_equal(changes.list[0].nr_changes, 1); /* the other has not the size */
	assert_int_equal(changes.list[0].changes[0].stack_id, 3);
	assert_string_equal(changes.list[1].end, "request");
	assert_string_equal(changes.list[2].begin, "request");
	assert_int_equal(changes.list[1].bytes, 20);
	assert_null(changes.list[2].end);
	mark_changes_deinit(&changes);
}

static void the_last_ones_are_kept(void **state)
{
	struct mark_changes changes;

	assert_int_equal(mark_changes_init(&changes, NULL), 0);
	for (uint64_t i = 1; i <= MARK_CHANGES_MAX + 5; i++) {
		for (uint32_t stack = 0; i == 50 && stack < MARK_CHANGES_MAX_STACKS + 10; stack++)
			allocate(&changes, stack, 100 + stack, i * 100);
		allocate(&changes, 1, 1, i * 100);
		mark(&changes, i, NULL, i * 100 + 50);
	}
	assert_int_equal(mark_changes_finish(&changes, 100000), 0);
	assert_int_equal(changes.nr, MARK_CHANGES_MAX);
	assert_string_equal(changes.list[0].end, "mark-7");
	assert_null(changes.list[MARK_CHANGES_MAX - 1].end);
	/* Of many stacks, those that changed most. */
	assert_string_equal(changes.list[43].end, "mark-50");
	assert_int_equal(changes.list[43].nr_changes, MARK_CHANGES_MAX_STACKS);
	assert_int_equal(changes.list[43].changes[0].stack_id, MARK_CHANGES_MAX_STACKS + 9);
	mark_changes_deinit(&changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_have_names),
		cmocka_unit_test(the_last_ones_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
