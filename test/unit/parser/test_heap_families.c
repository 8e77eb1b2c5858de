/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++'s operators and the malloc() that they call: which calls count as one, and which mismatch. */
#include "test/support/heap_feed_tests.h"

#define DELETE_PROBE	   0x7f0000300000u /* in its own library, far from malloc's */
#define DELETE_ARRAY_PROBE 0x7f0000300100u
#define NEW_PROBE	   0x7f0000300200u
#define NEW_ARRAY_PROBE	   0x7f0000300300u

static void enter(const char *function, uint64_t probe, uint64_t caller, uint64_t arg)
{
	feed.probe_address = probe;
	feed.caller = caller;
	feed_entry(&feed, function, arg, 0, 0);
	feed.probe_address = 0;
	feed.caller = FEED_PROGRAM;
}

static void leave(const char *function, uint64_t probe, uint64_t caller, uint64_t value)
{
	feed.probe_address = probe;
	feed.caller = caller;
	feed_return(&feed, function, value);
	feed.probe_address = 0;
	feed.caller = FEED_PROGRAM;
}

/* operator new[] calls operator new, which calls malloc. */
static void make_array(uint64_t size, uint64_t block)
{
	enter("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, size);
	enter("operator_new", NEW_PROBE, NEW_ARRAY_PROBE + 9, size);
	enter("malloc", 0, NEW_PROBE + 12, size);
	leave("malloc", 0, NEW_PROBE + 12, block);
	leave("operator_new", NEW_PROBE, NEW_ARRAY_PROBE + 9, block);
	leave("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, block);
}

/* operator delete[] jumps to operator delete, which calls free. */
static void release_array(uint64_t block)
{
	enter("operator_delete_array", DELETE_ARRAY_PROBE, FEED_PROGRAM, block);
	enter("operator_delete", DELETE_PROBE, FEED_PROGRAM, block);
	enter("free", 0, DELETE_PROBE + 9, block);
}

static void operators_around_malloc_count_once(void **state)
{
	const struct heap_block *held;

	make_array(100, 0xa0);
	make_array(200, 0xb0);
	release_array(0xa0);
	feed_finish(&feed);
	held = feed_only_held(&feed);
	assert_int_equal(held->address, 0xb0);
	assert_int_equal(held->size_bytes, 200);
	assert_string_equal(held->allocated.schema->function, "operator_new_array");
	assert_int_equal(feed_stats(&feed)->allocations, 2);
	assert_int_equal(feed_stats(&feed)->allocated_bytes, 300);
	assert_int_equal(feed_stats(&feed)->frees, 1);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void what_does_not_go_together_is_reported_with_both(void **state)
{
	const struct heap_anomaly *anomaly;

	make_array(100, 0xa0);
	feed.stack_id = 7;
	enter("operator_delete", DELETE_PROBE, FEED_PROGRAM, 0xa0);
	enter("free", 0, DELETE_PROBE + 9, 0xa0);
	feed_finish(&feed);
	anomaly = feed_only_anomaly(&feed);
	assert_int_equal(anomaly->kind, ANOMALY_MISMATCH);
	assert_int_equal(anomaly->address, 0xa0);
	assert_int_equal(anomaly->op.stack_id, 7);
	assert_string_equal(anomaly->op.schema->function, "operator_delete");
	assert_string_equal(anomaly->block.allocated.schema->function, "operator_new_array");
	assert_int_equal(feed_stats(&feed)->frees, 1);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void realloc_releases_as_free_does(void **state)
{
	make_array(100, 0xa0);
	feed_realloc(&feed, 0xa0, 200, 0xb0);
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_MISMATCH);
}

static void of_shared_code_nothing_is_said(void **state)
{
	make_array(100, 0xa0);
	enter("free_or_delete", DELETE_PROBE, FEED_PROGRAM, 0xa0);
	enter("new", NEW_PROBE, FEED_PROGRAM, 10);
	leave("new", NEW_PROBE, FEED_PROGRAM, 0xb0);
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void a_second_delete_is_a_double_free(void **state)
{
	make_array(100, 0xa0);
	release_array(0xa0);
	release_array(0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_string_equal(feed_only_anomaly(&feed)->op.schema->function, "operator_delete_array");
}

static void free_after_delete_is_a_double_free(void **state)
{
	make_array(100, 0xa0);
	release_array(0xa0);
	enter("free", 0, FEED_PROGRAM + 0x40, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_string_equal(feed_only_anomaly(&feed)->op.schema->function, "free");
}

/* An operator new that puts 16 bytes before what malloc returned. */
static void headers_before_blocks_are_the_operators_own(void **state)
{
	enter("operator_new", NEW_PROBE, FEED_PROGRAM, 100);
	enter("malloc", 0, NEW_PROBE + 12, 116);
	leave("malloc", 0, NEW_PROBE + 12, 0xa0);
	leave("operator_new", NEW_PROBE, FEED_PROGRAM, 0xb0);
	enter("operator_delete", DELETE_PROBE, FEED_PROGRAM, 0xb0);
	enter("free", 0, DELETE_PROBE + 9, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 1);
	assert_int_equal(feed_stats(&feed)->allocated_bytes, 100);
	assert_int_equal(feed_stats(&feed)->frees, 1);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void nothing_is_released_once(void **state)
{
	release_array(0);
	release_array(0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->null_frees, 2);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

/* Exits: each call sends the events of all functions that end at an instruction */

#define EXIT_AT		(NEW_PROBE + 0x70)
#define OTHER_CALLER	(FEED_PROGRAM + 0x80)
#define OTHER_NEW_PROBE (NEW_PROBE + 0x100000) /* of another library */

static void leave_by_exit(const char *function, uint64_t probe, uint64_t caller, uint64_t block)
{
	struct perf_sample sample = {.ret = block, .return_address = caller};

	sample.args[0] = EXIT_AT - probe;
	feed.probe_address = probe;
	feed_send(&feed, function, PROBE_EXIT, &sample);
	feed.probe_address = 0;
}

/* An exit that operator new[] and operator new share; the first one jumps to the second. */
static void leave_shared_exit(bool array_first, uint64_t caller, uint64_t block)
{
	if (array_first)
		leave_by_exit("operator_new_array", NEW_ARRAY_PROBE, caller, block);
	leave_by_exit("operator_new", NEW_PROBE, caller, block);
	if (!array_first)
		leave_by_exit("operator_new_array", NEW_ARRAY_PROBE, caller, block);
}

static void exits_of_other_calls_are_ignored(void **state)
{
	leave_by_exit("operator_new", NEW_PROBE, FEED_PROGRAM, 0xa0);
	enter("operator_new", NEW_PROBE, FEED_PROGRAM, 100);
	leave_by_exit("operator_new", NEW_PROBE, OTHER_CALLER, 0xb0);
	leave_by_exit("operator_new", NEW_ARRAY_PROBE, FEED_PROGRAM, 0xc0);
	leave_by_exit("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, 0xd0);
	assert_int_equal(feed_stats(&feed)->allocations, 0);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 0);
	leave_by_exit("operator_new", NEW_PROBE, FEED_PROGRAM, 0xe0);
	/* They were recorded, and leakrec has counted them. */
	assert_int_equal(feed_stats(&feed)->events, 6);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->address, 0xe0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void an_exit_ends_a_call_of_its_own_function(void **state)
{
	enter("operator_new", NEW_PROBE, FEED_PROGRAM, 100);
	enter("operator_new", OTHER_NEW_PROBE, 0x7ffff000, 60); /* it threw */
	leave_by_exit("operator_new", NEW_PROBE, FEED_PROGRAM, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->address, 0xa0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 100);
}

/* Its return address is not known: a return probe's trampoline was there. */
static void an_exit_of_malloc_ends_no_call_that_threw(void **state)
{
	enter("operator_new", NEW_PROBE, FEED_PROGRAM, 1ull << 50);
	enter("malloc", 0, FEED_PROGRAM + 0x20, 136);
	leave_by_exit("operator_new", NEW_PROBE, 0x7ffff000, 0xa0);
	leave("malloc", 0, FEED_PROGRAM + 0x20, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 136);
	assert_int_equal(feed_stats(&feed)->allocations, 1);
}

static void calls_that_threw_end_with_no_other(void **state)
{
	for (int i = 0; i < 40; i++) {
		uint64_t block = 0x1000 + (uint64_t)i * 16;

		enter("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, 1ull << 50);
		enter("operator_new", NEW_PROBE, FEED_PROGRAM, 1ull << 50);
		feed_malloc(&feed, 136, 0xa0); /* the exception */
		feed_free(&feed, 0xa0);
		enter("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, 50);
		enter("operator_new", NEW_PROBE, FEED_PROGRAM, 50);
		leave_shared_exit(i % 2, FEED_PROGRAM, block);
		release_array(block);
		enter("operator_new", NEW_PROBE, OTHER_CALLER, 60);
		leave_shared_exit(i % 2, OTHER_CALLER, block);
	}
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 120);
	assert_int_equal(feed_nr_held(&feed), 40);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

/* Their events come in any order. */
static void calls_that_share_an_exit_both_end(void **state)
{
	for (int i = 0; i < 2; i++) {
		enter("operator_new_array", NEW_ARRAY_PROBE, FEED_PROGRAM, 50);
		enter("operator_new", NEW_PROBE, FEED_PROGRAM, 50);
		leave_shared_exit(i, FEED_PROGRAM, 0xa0);
		release_array(0xa0);
	}
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 2);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(operators_around_malloc_count_once),
		TEST(what_does_not_go_together_is_reported_with_both),
		TEST(realloc_releases_as_free_does),
		TEST(of_shared_code_nothing_is_said),
		TEST(a_second_delete_is_a_double_free),
		TEST(free_after_delete_is_a_double_free),
		TEST(headers_before_blocks_are_the_operators_own),
		TEST(nothing_is_released_once),
		TEST(exits_of_other_calls_are_ignored),
		TEST(an_exit_ends_a_call_of_its_own_function),
		TEST(an_exit_of_malloc_ends_no_call_that_threw),
		TEST(calls_that_threw_end_with_no_other),
		TEST(calls_that_share_an_exit_both_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
