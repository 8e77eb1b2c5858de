/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Effects of calls on the heap: pairing, nesting, posix_memalign, lost events. For realloc see
 * test_heap_realloc.c.
 */
#include "test/support/heap_feed_tests.h"

#include <string.h>

static void pairs_entry_and_return(void **state)
{
	const struct heap_block *block;

	feed.stack_id = 5;
	feed_malloc(&feed, 100, 0xa0);
	feed.stack_id = 0;
	feed_malloc(&feed, 50, 0xb0);
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	block = feed_only_held(&feed);
	assert_int_equal(block->address, 0xa0);
	assert_int_equal(block->size_bytes, 100);
	assert_true(block->size_known);
	assert_int_equal(block->allocated.sequence, 2);
	assert_int_equal(block->allocated.time_ns, 20);
	assert_int_equal(block->allocated.tid, 100);
	assert_int_equal(block->allocated.stack_id, 5);
	assert_string_equal(block->allocated.schema->function, "malloc");
	check_totals(2, 150, 1, 50);
	assert_int_equal(feed_stats(&feed)->events, 5);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
}

static void takes_the_stack_of_the_return_or_else_the_entrys(void **state)
{
	const struct heap_block *blocks;

	feed.stack_id = 3;
	feed_entry(&feed, "malloc", 8, 0, 0);
	feed.stack_id = 4;
	feed_return(&feed, "malloc", 0xa0);
	feed.stack_id = 6;
	feed_entry(&feed, "malloc", 8, 0, 0);
	feed.stack_id = STACK_NONE;
	feed_return(&feed, "malloc", 0xb0);
	assert_int_equal(feed_held(&feed, &blocks), 2);
	assert_int_equal(blocks[0].allocated.stack_id, 4);
	assert_int_equal(blocks[1].allocated.stack_id, 6);
}

static void threads_do_not_mix(void **state)
{
	const struct heap_block *blocks;

	feed_as(&feed, 100, 101);
	feed_entry(&feed, "malloc", 11, 0, 0);
	feed_as(&feed, 100, 102);
	feed_entry(&feed, "malloc", 12, 0, 0);
	feed_as(&feed, 100, 101);
	feed_return(&feed, "malloc", 0xa0);
	feed_as(&feed, 100, 102);
	feed_return(&feed, "malloc", 0xb0);
	/* A thread may free another's block. */
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_held(&feed, &blocks), 1);
	assert_int_equal(blocks[0].size_bytes, 12);
	assert_int_equal(blocks[0].allocated.tid, 102);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void processes_do_not_mix(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xa0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 10);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void calloc_multiplies_and_saturates(void **state)
{
	const struct heap_block *blocks;

	feed_entry(&feed, "calloc", 3, 100, 0);
	feed_return(&feed, "calloc", 0xa0);
	feed_entry(&feed, "calloc", UINT64_MAX / 2, 3, 0);
	feed_return(&feed, "calloc", 0xb0);
	assert_int_equal(feed_held(&feed, &blocks), 2);
	assert_int_equal(blocks[0].size_bytes, 300);
	assert_true(blocks[1].size_bytes == UINT64_MAX);
}

static void aligned_functions_know_their_size(void **state)
{
	const char *const functions[] = {"aligned_alloc", "memalign"};

	for (size_t i = 0; i < 2; i++) {
		feed_entry(&feed, functions[i], 64, 640, 0);
		feed_return(&feed, functions[i], 0x1000 * (i + 1));
	}
	check_totals(2, 1280, 0, 0);
}

static void zero_size_is_a_block(void **state)
{
	feed_malloc(&feed, 0, 0xa0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 0);
	assert_true(feed_only_held(&feed)->size_known);
	feed_free(&feed, 0xa0);
	check_totals(1, 0, 1, 0);
}

static void null_frees_are_counted(void **state)
{
	feed_free(&feed, 0);
	feed_free(&feed, 0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->null_frees, 2);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	check_totals(0, 0, 0, 0);
}

static void free_of_an_unknown_block(void **state)
{
	uint64_t sequence = feed_free(&feed, 0xa0);

	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_FREE_UNKNOWN);
	assert_int_equal(feed_only_anomaly(&feed)->address, 0xa0);
	assert_int_equal(feed_only_anomaly(&feed)->op.sequence, sequence);
	check_totals(0, 0, 0, 0);
}

static void double_free_names_both(void **state)
{
	const struct heap_anomaly *anomaly;
	uint64_t first, second;

	feed_malloc(&feed, 10, 0xa0);
	feed.stack_id = 7;
	first = feed_free(&feed, 0xa0);
	feed_as(&feed, 100, 101);
	feed.stack_id = 8;
	second = feed_free(&feed, 0xa0);
	feed_finish(&feed);
	anomaly = feed_only_anomaly(&feed);
	assert_int_equal(anomaly->kind, ANOMALY_DOUBLE_FREE);
	assert_int_equal(anomaly->released.sequence, first);
	assert_int_equal(anomaly->released.stack_id, 7);
	assert_int_equal(anomaly->op.sequence, second);
	assert_int_equal(anomaly->op.stack_id, 8);
	assert_int_equal(anomaly->op.tid, 101);
	assert_int_equal(anomaly->block.size_bytes, 10);
	check_totals(1, 10, 1, 10);
}

static void allocation_of_a_held_address(void **state)
{
	const struct heap_anomaly *anomaly;

	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 20, 0xa0);
	feed_finish(&feed);
	anomaly = feed_only_anomaly(&feed);
	assert_int_equal(anomaly->kind, ANOMALY_STILL_HELD);
	assert_int_equal(anomaly->block.size_bytes, 10);
	assert_int_equal(anomaly->op.sequence, 4);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
	check_totals(2, 30, 0, 0);
}

static void failed_allocations(void **state)
{
	feed.stack_id = 9;
	feed_entry(&feed, "malloc", 1, 0, 0);
	feed.stack_id = STACK_NONE;
	feed_return(&feed, "malloc", 0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_ALLOC_FAILED);
	assert_int_equal(feed_only_anomaly(&feed)->op.stack_id, 9);
	check_totals(0, 0, 0, 0);
}

static void null_for_zero_bytes_is_no_failure(void **state)
{
	feed_malloc(&feed, 0, 0);
	feed_entry(&feed, "calloc", 0, 8, 0);
	feed_return(&feed, "calloc", 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

/* realloc */

static void every_event_twice(const char *function, uint64_t a, uint64_t b, uint64_t value)
{
	feed.probe_address = 0x7f0000026010;
	feed_entry(&feed, function, a, b, 0);
	feed.probe_address = 0;
	feed.caller = 0x7fffffffe000;
	feed_entry(&feed, function, a, b, 0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, function, value);
	feed.probe_address = 0x7f0000026010;
	feed_return(&feed, function, value);
	feed.probe_address = 0;
}

static void calls_seen_twice_count_once(void **state)
{
	for (int i = 0; i < 2; i++) {
		feed.callers = i == 0;
		every_event_twice("calloc", 3, 10, 0xa0);
		every_event_twice("realloc", 0xa0, 50, 0xb0);
		every_event_twice("realloc", 0xb0, 60, 0xb0);
		every_event_twice("realloc", 0xb0, 0, 0);
	}
	feed_finish(&feed);
	check_totals(6, 280, 6, 280);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
}

static void failures_seen_twice_count_once(void **state)
{
	every_event_twice("calloc", 3, 10, 0);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_ALLOC_FAILED], 1);
	every_event_twice("calloc", 3, 10, 0xa0);
	every_event_twice("realloc", 0xa0, 50, 0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_ALLOC_FAILED], 2);
	assert_int_equal(feed_nr_anomalies(&feed), 2);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 30);
	check_totals(1, 30, 0, 0);
}

static void unknown_realloc_seen_twice_counts_once(void **state)
{
	every_event_twice("realloc", 0xa0, 50, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_REALLOC_UNKNOWN);
}

static void frees_seen_twice_count_once(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	for (int i = 0; i < 2; i++) {
		feed.probe_address = 0x7f0000026010;
		feed_free(&feed, 0xa0);
		feed.probe_address = 0;
		feed_free(&feed, 0xa0);
		feed_finish(&feed);
		assert_int_equal(feed_nr_anomalies(&feed),
				 i); /* the second pair is a double free */
	}
	check_totals(1, 10, 1, 10);
}

static void block_within_an_inner_block(void **state)
{
	/*
	 * musl's aligned_alloc() asks malloc() for a larger block, and returns an address inside.
	 */
	feed_entry(&feed, "aligned_alloc", 64, 100, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 163, 0xa10);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "aligned_alloc", 0xa40);
	assert_int_equal(feed_only_held(&feed)->address, 0xa40);
	check_totals(1, 100, 0, 0);
}

static void failure_that_the_outer_call_copes_with(void **state)
{
	feed_entry(&feed, "memalign", 64, 100, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 100, 0);
	feed_malloc(&feed, 100, 0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "memalign", 0xa40);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void three_deep(void **state)
{
	feed_entry(&feed, "realloc", 0, 30, 0);
	feed.caller = FEED_IN_LIBC;
	feed_entry(&feed, "calloc", 1, 30, 0);
	feed_malloc(&feed, 30, 0xa0);
	feed_return(&feed, "calloc", 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	check_totals(1, 30, 0, 0);
}

/* posix_memalign */

static void posix_memalign_by_store(void **state)
{
	feed_entry(&feed, "posix_memalign", 0x7ffe10, 64, 100);
	feed_store(&feed, 0x7ffe18, 0xbad); /* another's */
	feed_store(&feed, 0x7ffe10, 0xa40);
	feed_return(&feed, "posix_memalign", 0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->address, 0xa40);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 100);
	assert_int_equal(feed_stats(&feed)->blocks_unlocated, 0);
	check_totals(1, 100, 0, 0);
}

static void posix_memalign_by_stack_dump(void **state)
{
	/* PERF_REG_X86_SP is 7 (arch/x86/include/uapi/asm/perf_regs.h). */
	const uint64_t sp = 0x7ffe00, block = 0xa40;
	uint8_t bytes[32] = {0};
	struct perf_sample sample = {
		.ret = 0,
		.return_address = FEED_PROGRAM,
		.has_dump = true,
		.dump = {.regs_abi = 2,
			 .regs_mask = 1 << 7,
			 .regs = &sp,
			 .bytes = bytes,
			 .nr_bytes = sizeof(bytes)},
	};

	memcpy(bytes + 0x10, &block, sizeof(block));
	feed_entry(&feed, "posix_memalign", 0x7ffe10, 64, 100);
	feed_send(&feed, "posix_memalign", PROBE_RETURN, &sample);
	assert_int_equal(feed_only_held(&feed)->address, 0xa40);

	/* memptr points elsewhere, not into the dump. */
	feed_entry(&feed, "posix_memalign", 0x404040, 64, 100);
	feed_send(&feed, "posix_memalign", PROBE_RETURN, &sample);
	assert_int_equal(feed_nr_held(&feed), 1);
	assert_int_equal(feed_stats(&feed)->blocks_unlocated, 1);
}

static void posix_memalign_unlocated(void **state)
{
	feed_entry(&feed, "posix_memalign", 0x7ffe10, 64, 100);
	feed_return(&feed, "posix_memalign", 0);
	feed_return(&feed, "posix_memalign", 0); /* and without its entry */
	feed_finish(&feed);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_stats(&feed)->blocks_unlocated, 2);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 1);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void posix_memalign_located_by_an_inner_call(void **state)
{
	feed_entry(&feed, "posix_memalign", 0x7ffe10, 64, 100);
	feed.caller = FEED_IN_LIBC;
	feed_entry(&feed, "aligned_alloc", 64, 100, 0);
	feed_return(&feed, "aligned_alloc", 0xa40);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "posix_memalign", 0);
	assert_int_equal(feed_only_held(&feed)->address, 0xa40);
	assert_int_equal(feed_stats(&feed)->blocks_unlocated, 0);
}

static void posix_memalign_fails(void **state)
{
	feed_entry(&feed, "posix_memalign", 0x7ffe10, 3, 100);
	feed_return(&feed, "posix_memalign", 22);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_ALLOC_FAILED);
	assert_int_equal(feed_nr_held(&feed), 0);
}

/* Lost events */

static void return_without_entry(void **state)
{
	feed_return(&feed, "malloc", 0xa0);
	assert_int_equal(feed_only_held(&feed)->address, 0xa0);
	assert_false(feed_only_held(&feed)->size_known);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 1);
	check_totals(1, 0, 0, 0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void realloc_return_without_entry(void **state)
{
	feed_return(&feed, "realloc", 0); /* its size is not known */
	feed_return(&feed, "realloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->address, 0xa0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 2);
}

static void lost_return_does_not_take_the_next_ones(void **state)
{
	const struct heap_block *blocks;

	feed_entry(&feed, "calloc", 1, 10, 0);
	feed.caller = FEED_PROGRAM + 0x50;
	feed_entry(&feed, "calloc", 1, 20, 0);
	feed_return(&feed, "calloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_held(&feed, &blocks), 1);
	assert_int_equal(blocks[0].size_bytes, 20);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 0);
}

static void return_to_elsewhere_is_another_calls(void **state)
{
	feed_entry(&feed, "calloc", 1, 10, 0);
	feed.caller = FEED_PROGRAM + 0x50; /* the entry was lost */
	feed_return(&feed, "calloc", 0xa0);
	feed_finish(&feed);
	assert_false(feed_only_held(&feed)->size_known);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 1);
}

/* The return of a call was lost. Later calls are not part of that call. */
static void stale_call_withdraws_nothing(void **state)
{
	for (int known = 0; known < 2; known++) {
		feed.callers = known;
		for (uint64_t nr = 0; nr < 20; nr++) {
			uint64_t base = 0x1000 * (nr + 1 + 100 * (uint64_t)known);

			feed_entry(&feed, "realloc", 0, 10, 0); /* its return is lost */
			for (uint64_t i = 0; i < nr; i++)
				feed_malloc(&feed, 10, base + 16 * i);
			/* Another call's return, without its entry, looks like the lost one. */
			feed_return(&feed, "realloc", base + 0x800);
		}
	}
	feed_finish(&feed);
	assert_int_equal(feed_nr_held(&feed), 2 * (190 + 20));
	assert_int_equal(feed_stats(&feed)->allocations, 2 * (190 + 20));
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void call_with_too_many_inside_is_given_up(void **state)
{
	feed_entry(&feed, "memalign", 64, 10, 0); /* its return is lost */
	feed.caller = FEED_IN_LIBC;
	for (uint64_t i = 0; i < 8; i++)
		feed_malloc(&feed, 10, 0x1000 + 16 * i);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
	feed_malloc(&feed, 10, 0x2000);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "memalign", 0x3000);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 1);
	assert_int_equal(feed_nr_held(&feed), 10);
}

struct loss {
	uint64_t from_ns, to_ns;
};

static bool overlaps(const void *context, uint64_t from_ns, uint64_t to_ns)
{
	const struct loss *loss = context;

	return loss->from_ns < to_ns && loss->to_ns > from_ns;
}

/* Between two frees, the event that allocated the address again may have been lost. */
static void double_free_across_a_loss_is_none(void **state)
{
	struct loss loss = {0};

	heap_tracker_set_losses(feed.tracker, &(struct heap_losses){&loss, overlaps});
	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 10, 0xb0);
	feed_malloc(&feed, 10, 0xc0);
	feed_free(&feed, 0xa0);
	loss.from_ns = 10 * feed.sequence;
	feed_free(&feed, 0xc0);
	loss.to_ns = 10 * feed.sequence + 5;
	feed_free(&feed, 0xa0);
	feed_realloc(&feed, 0xc0, 20, 0xd0);
	feed_free(&feed, 0xb0);
	feed_free(&feed, 0xb0); /* after the loss */
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_FREE_UNKNOWN], 1);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_REALLOC_UNKNOWN], 1);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
	/* A later record tells that there was another loss. */
	loss.to_ns = UINT64_MAX;
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_FREE_UNKNOWN], 2);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 0);
}

static void stale_realloc_hides_no_double_free(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0); /* its return is lost */
	feed_malloc(&feed, 30, 0xa0);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	check_totals(2, 40, 2, 40);
}

static void free_by_the_program_is_not_inside_a_stale_realloc(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0); /* its return is lost */
	feed.caller = FEED_PROGRAM + 0x50;
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
}

static void open_calls_are_bounded(void **state)
{
	for (uint64_t i = 0; i < 1000; i++)
		feed_entry(&feed, i % 2 ? "calloc" : "malloc", 10, 10, 0);
	feed_return(&feed, "malloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 999);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 10);
}

static void return_ends_the_calls_inside(void **state)
{
	feed_entry(&feed, "realloc", 0, 20, 0);
	feed.caller = FEED_IN_LIBC;
	feed_entry(&feed, "calloc", 1, 20, 0); /* its return is lost */
	feed_malloc(&feed, 20, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	check_totals(1, 20, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pairs_entry_and_return),
		TEST(takes_the_stack_of_the_return_or_else_the_entrys),
		TEST(threads_do_not_mix),
		TEST(processes_do_not_mix),
		TEST(calloc_multiplies_and_saturates),
		TEST(aligned_functions_know_their_size),
		TEST(zero_size_is_a_block),
		TEST(null_frees_are_counted),
		TEST(free_of_an_unknown_block),
		TEST(double_free_names_both),
		TEST(allocation_of_a_held_address),
		TEST(failed_allocations),
		TEST(null_for_zero_bytes_is_no_failure),
		TEST(calls_seen_twice_count_once),
		TEST(failures_seen_twice_count_once),
		TEST(unknown_realloc_seen_twice_counts_once),
		TEST(frees_seen_twice_count_once),
		TEST(block_within_an_inner_block),
		TEST(failure_that_the_outer_call_copes_with),
		TEST(three_deep),
		TEST(posix_memalign_by_store),
		TEST(posix_memalign_by_stack_dump),
		TEST(posix_memalign_unlocated),
		TEST(posix_memalign_located_by_an_inner_call),
		TEST(posix_memalign_fails),
		TEST(return_without_entry),
		TEST(realloc_return_without_entry),
		TEST(lost_return_does_not_take_the_next_ones),
		TEST(return_to_elsewhere_is_another_calls),
		TEST(stale_call_withdraws_nothing),
		TEST(call_with_too_many_inside_is_given_up),
		TEST(double_free_across_a_loss_is_none),
		TEST(stale_realloc_hides_no_double_free),
		TEST(free_by_the_program_is_not_inside_a_stale_realloc),
		TEST(open_calls_are_bounded),
		TEST(return_ends_the_calls_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
