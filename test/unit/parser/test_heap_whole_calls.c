/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that are one event, at their return, count like an entry and a return. */
#include "test/support/heap_feed_tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAMPOLINE 0x7fffffffe000u
#define PLT_STUB   0x7f0000026010u

/* Malloc is recorded as an entry and a return, or as one event. */
enum form { IN_TWO, IN_ONE };

struct run {
	struct feed feed;
	enum form form;
	FILE *log;
};

static void malloc_from(struct run *run, uint64_t entry_caller, uint64_t caller, uint64_t size,
			uint64_t block)
{
	run->feed.caller = caller;
	if (run->form == IN_ONE) {
		feed_call(&run->feed, "malloc", size, 0, block);
		return;
	}
	run->feed.caller = entry_caller;
	feed_entry(&run->feed, "malloc", size, 0, 0);
	run->feed.caller = caller;
	feed_return(&run->feed, "malloc", block);
}

static void program_mallocs(struct run *run, uint64_t size, uint64_t block)
{
	malloc_from(run, FEED_PROGRAM, FEED_PROGRAM, size, block);
}

static void allocator_mallocs(struct run *run, uint64_t size, uint64_t block)
{
	malloc_from(run, FEED_IN_LIBC, FEED_IN_LIBC, size, block);
	run->feed.caller = FEED_PROGRAM;
}

static void plain(struct run *run)
{
	program_mallocs(run, 10, 0xa0);
	program_mallocs(run, 20, 0xb0);
	feed_free(&run->feed, 0xa0);
	program_mallocs(run, 0, 0xc0);
	program_mallocs(run, 0, 0);
}

static void failing(struct run *run)
{
	program_mallocs(run, 10, 0);
	program_mallocs(run, 10, 0);
}

static void missed_free(struct run *run)
{
	program_mallocs(run, 10, 0xa0);
	program_mallocs(run, 20, 0xa0);
}

static void inside_realloc_by_a_jump(struct run *run)
{
	feed_entry(&run->feed, "realloc", 0, 20, 0);
	malloc_from(run, TRAMPOLINE, FEED_PROGRAM, 20, 0xa0);
	feed_return(&run->feed, "realloc", 0xa0);
}

static void inside_realloc_by_two_jumps(struct run *run)
{
	run->feed.probe_address = PLT_STUB;
	feed_entry(&run->feed, "realloc", 0, 20, 0);
	run->feed.probe_address = 0;
	run->feed.caller = TRAMPOLINE;
	feed_entry(&run->feed, "realloc", 0, 20, 0);
	malloc_from(run, TRAMPOLINE, FEED_PROGRAM, 20, 0xa0);
	feed_return(&run->feed, "realloc", 0xa0);
	run->feed.probe_address = PLT_STUB;
	feed_return(&run->feed, "realloc", 0xa0);
}

static void inside_realloc_that_moves(struct run *run)
{
	program_mallocs(run, 10, 0xa0);
	feed_entry(&run->feed, "realloc", 0xa0, 20, 0);
	allocator_mallocs(run, 20, 0xb0);
	run->feed.caller = FEED_IN_LIBC;
	feed_free(&run->feed, 0xa0);
	run->feed.caller = FEED_PROGRAM;
	feed_return(&run->feed, "realloc", 0xb0);
}

static void inside_realloc_and_failing(struct run *run)
{
	program_mallocs(run, 10, 0xa0);
	feed_entry(&run->feed, "realloc", 0xa0, 20, 0);
	allocator_mallocs(run, 20, 0);
	feed_return(&run->feed, "realloc", 0);
}

static void inside_memalign(struct run *run)
{
	feed_entry(&run->feed, "memalign", 64, 20, 0);
	allocator_mallocs(run, 8, 0xa0); /* the allocator's own */
	allocator_mallocs(run, 100, 0xb00);
	feed_return(&run->feed, "memalign", 0xb40);
}

static void in_a_call_whose_return_is_lost(struct run *run)
{
	feed_entry(&run->feed, "memalign", 64, 20, 0);
	for (uint64_t i = 1; i <= 20; i++)
		allocator_mallocs(run, 8, 0xa000 * i);
	program_mallocs(run, 9, 0xb0);
}

static void from_elsewhere_in_an_open_call(struct run *run)
{
	feed_entry(&run->feed, "memalign", 64, 20, 0); /* its return is lost */
	malloc_from(run, FEED_PROGRAM + 0x50, FEED_PROGRAM + 0x50, 8, 0xa0);
}

static void on_a_full_stack(struct run *run)
{
	for (uint64_t i = 0; i < 40; i++) {
		run->feed.caller = FEED_IN_LIBC + i;
		feed_entry(&run->feed, "calloc", 1, i, 0);
	}
	program_mallocs(run, 10, 0xa0);
}

static void before_a_threads_flush(struct run *run)
{
	feed_new_thread(&run->feed, 101);
	feed_as(&run->feed, 100, 101);
	program_mallocs(run, 10, 0xa0);
	feed_free(&run->feed, 0xa0);
	program_mallocs(run, 11, 0xb0);
	run->feed.caller = FEED_IN_LIBC;
	feed_free(&run->feed, 0xa0);
	feed_free(&run->feed, 0xc0);
	feed_exit(&run->feed, 100, 101);
}

static void between_suspicious_frees(struct run *run)
{
	feed_new_thread(&run->feed, 101);
	feed_as(&run->feed, 100, 101);
	run->feed.caller = FEED_IN_LIBC;
	feed_free(&run->feed, 0xa0);
	program_mallocs(run, 11, 0xb0);
	run->feed.caller = FEED_IN_LIBC;
	feed_free(&run->feed, 0xc0);
	feed_exit(&run->feed, 100, 101);
}

static void of_a_child(struct run *run)
{
	program_mallocs(run, 10, 0xa0);
	feed_fork(&run->feed, 200);
	feed_as(&run->feed, 200, 200);
	program_mallocs(run, 20, 0xb0);
	feed_free(&run->feed, 0xa0);
	feed_exit(&run->feed, 200, 200);
}

static void log_change(void *context, const struct heap_change *change)
{
	struct run *run = context;

	fprintf(run->log, "%c 0x%" PRIx64 " %" PRIu64 " %s\n", change->enters ? '+' : '-',
		change->block.address, change->block.size_bytes, change->op.schema->function);
}

static void log_outcome(struct run *run)
{
	const struct heap_tracker_stats *stats = feed_stats(&run->feed);
	const struct heap_block *held;
	const struct heap_anomaly *anomalies;
	size_t nr = feed_held(&run->feed, &held);

	for (size_t i = 0; i < nr; i++)
		fprintf(run->log, "held 0x%" PRIx64 " %" PRIu64 " %d %s %d/%d %u\n",
			held[i].address, held[i].size_bytes, held[i].size_known,
			held[i].allocated.schema->function, held[i].allocated.pid,
			held[i].allocated.tid, held[i].allocated.stack_id);
	anomalies = heap_tracker_anomalies(run->feed.tracker, &nr);
	for (size_t i = 0; i < nr; i++)
		fprintf(run->log, "anomaly %d 0x%" PRIx64 " %s\n", anomalies[i].kind,
			anomalies[i].address, anomalies[i].op.schema->function);
	fprintf(run->log,
		"allocations %" PRIu64 " %" PRIu64 " frees %" PRIu64 " %" PRIu64 " exit %" PRIu64
		" unpaired %" PRIu64 " %" PRIu64 "\n",
		stats->allocations, stats->allocated_bytes, stats->frees, stats->freed_bytes,
		stats->thread_exit_frees, stats->entries_without_return,
		stats->returns_without_entry);
}

static char *outcome_of(void (*program)(struct run *), enum form form)
{
	struct run run = {.form = form};
	struct heap_observer observer = {.context = &run, .on_change = log_change};
	char *text;
	size_t size;

	run.log = open_memstream(&text, &size);
	assert_non_null(run.log);
	feed_init(&run.feed, &observer);
	run.feed.stack_id = 7;
	program(&run);
	feed_finish(&run.feed);
	log_outcome(&run);
	feed_deinit(&run.feed);
	fclose(run.log);
	return text;
}

static void the_same_in_one_as_in_two(void **state)
{
	static void (*const programs[])(struct run *) = {
		plain,
		failing,
		missed_free,
		inside_realloc_by_a_jump,
		inside_realloc_by_two_jumps,
		inside_realloc_that_moves,
		inside_realloc_and_failing,
		inside_memalign,
		in_a_call_whose_return_is_lost,
		from_elsewhere_in_an_open_call,
		on_a_full_stack,
		before_a_threads_flush,
		between_suspicious_frees,
		of_a_child,
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char *in_two = outcome_of(programs[i], IN_TWO);
		char *in_one = outcome_of(programs[i], IN_ONE);

		assert_string_equal(in_one, in_two);
		free(in_one);
		free(in_two);
	}
}

static void is_one_event(void **state)
{
	const struct heap_block *block;

	feed.stack_id = 5;
	feed_call(&feed, "malloc", 100, 0, 0xa0);
	block = feed_only_held(&feed);
	assert_int_equal(block->size_bytes, 100);
	assert_int_equal(block->allocated.sequence, 1);
	assert_int_equal(block->allocated.stack_id, 5);
	assert_int_equal(feed_stats(&feed)->events, 1);
	assert_int_equal(feed_stats(&feed)->allocations, 1);
}

static void stands_next_to_entries_and_returns(void **state)
{
	feed_call(&feed, "malloc", 1, 0, 0xa0);
	feed_malloc(&feed, 2, 0xb0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 3, 0xc0);
	feed_call(&feed, "malloc", 4, 0, 0xd0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_held(&feed), 4);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 0);
}

static void any_function_can_have_it(void **state)
{
	struct perf_sample sample = {.args = {0x7ffe0000, 64, 30}, .block = 0xd00};
	const struct heap_block *held;

	feed_call(&feed, "calloc", 3, 10, 0xa00);
	feed_call(&feed, "realloc", 0xa00, 20, 0xb00);
	feed_call(&feed, "memalign", 64, 8, 0xc00);
	feed_send(&feed, "posix_memalign", PROBE_CALL, &sample);
	feed_call(&feed, "realloc", 0xb00, 40, 0);
	feed_call(&feed, "free", 0xc00, 0, 0);
	assert_int_equal(feed_held(&feed, &held), 2);
	assert_int_equal(held[0].address, 0xb00);
	assert_int_equal(held[0].size_bytes, 20);
	assert_int_equal(held[1].address, 0xd00);
	assert_int_equal(held[1].size_bytes, 30);
	assert_int_equal(feed_stats(&feed)->allocations, 4);
	assert_int_equal(feed_stats(&feed)->frees, 2);
	assert_int_equal(feed_nr_anomalies(&feed), 1);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_ALLOC_FAILED], 1);
}

/* An allocator's malloc that calls another's: the outer event comes after the inner one. */
static void one_seen_around_another_is_one(void **state)
{
	feed.caller = PLT_STUB + 0x20;
	feed_call(&feed, "malloc", 16, 0, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed.probe_address = PLT_STUB;
	feed_call(&feed, "malloc", 8, 0, 0xa8);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->address, 0xa8);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 8);
	assert_int_equal(feed_stats(&feed)->allocations, 1);
	assert_int_equal(feed_stats(&feed)->allocated_bytes, 8);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void one_that_fails_around_another_fails_once(void **state)
{
	feed.caller = PLT_STUB + 0x20;
	feed_call(&feed, "malloc", 16, 0, 0);
	feed.caller = FEED_PROGRAM;
	feed.probe_address = PLT_STUB;
	feed_call(&feed, "malloc", 8, 0, 0);
	assert_int_equal(feed_nr_anomalies(&feed), 1);
}

static void one_after_another_are_two(void **state)
{
	feed_call(&feed, "malloc", 16, 0, 0xa0);
	feed.caller = FEED_PROGRAM + 0x40;
	feed.probe_address = PLT_STUB; /* another allocator's, by its address */
	feed_call(&feed, "malloc", 16, 0, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 2);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_STILL_HELD);
}

/* A small static program: its main() is near its malloc(). */
#define NEAR_MAIN (FEED_LIBC + 0x3000)

static void calls_of_a_near_program_are_its_own(void **state)
{
	for (uint64_t i = 0; i < 10; i++) {
		feed.caller = NEAR_MAIN + 0x10;
		feed_realloc(&feed, 0, 1 << 30, 0);
		feed.caller = NEAR_MAIN + 0x24;
		feed_call(&feed, "malloc", 1 << 30, 0, 0);
	}
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_ALLOC_FAILED], 20);
}

/* A realloc() that longjmp() has left is around no later call. */
static void calls_after_a_jump_out_are_not_inside(void **state)
{
	feed_malloc(&feed, 8, 0xa0);
	feed.caller = NEAR_MAIN + 0x10;
	feed_entry(&feed, "realloc", 0, 100, 0);
	feed.caller = NEAR_MAIN + 0x24;
	feed_call(&feed, "malloc", 1 << 30, 0, 0);
	feed.caller = NEAR_MAIN + 0x10;
	feed_return(&feed, "realloc", 0xb0); /* of the next one, whose entry is lost */
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_ALLOC_FAILED], 1);
}

/* libstdc++ 6.0.30: operators new call each other from within a hundred bytes. */
static void calls_of_small_functions_are_inside(void **state)
{
	const uint64_t outer = 0x7f3b922a9670, middle = 0x7f3b922a9604, inner = 0x7f3b922a9646;

	feed.probe_address = outer;
	feed_entry(&feed, "operator_new", 10, 0, 0);
	feed.probe_address = middle;
	feed.caller = outer + 0xd;
	feed_entry(&feed, "operator_new", 10, 0, 0);
	feed.probe_address = 0;
	feed.caller = inner;
	feed_entry(&feed, "aligned_alloc", 128, 128, 0);
	feed_return(&feed, "aligned_alloc", 0xa0);
	feed.probe_address = middle;
	feed.caller = outer + 0xd;
	feed_return(&feed, "operator_new", 0xa0);
	feed.probe_address = outer;
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "operator_new", 0xa0);
	/* The same, where the middle one is one event and nothing is seen around it. */
	feed.probe_address = 0;
	feed.caller = inner;
	feed_call(&feed, "malloc", 128, 0, 0xb0);
	feed.probe_address = middle;
	feed.caller = outer + 0xd;
	feed_call(&feed, "operator_new", 10, 0, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 2);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

static void calls_from_a_near_allocator_are_inside(void **state)
{
	feed.caller = NEAR_MAIN + 0x10;
	feed_entry(&feed, "realloc", 0, 100, 0);
	feed.caller = feed_function_address(probe_schema_find("realloc")) + 0x30;
	feed_call(&feed, "malloc", 100, 0, 0xa0);
	feed.caller = NEAR_MAIN + 0x10;
	feed_return(&feed, "realloc", 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->allocations, 1);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_in_one_as_in_two),
		TEST(is_one_event),
		TEST(stands_next_to_entries_and_returns),
		TEST(any_function_can_have_it),
		TEST(one_seen_around_another_is_one),
		TEST(one_that_fails_around_another_fails_once),
		TEST(one_after_another_are_two),
		TEST(calls_of_a_near_program_are_its_own),
		TEST(calls_after_a_jump_out_are_not_inside),
		TEST(calls_of_small_functions_are_inside),
		TEST(calls_from_a_near_allocator_are_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
