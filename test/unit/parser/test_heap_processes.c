/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heaps across fork, vfork, exec and exit; reused pids; command names. */
#include "common/schema/look_state.h"
#include "test/support/heap_feed_tests.h"

#include <malloc.h>
#include <sched.h>

static void child_has_a_copy(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 20, 0xb0);
	feed_fork(&feed, 200);
	feed_free(&feed, 0xa0); /* the parent's, after the fork */
	feed_malloc(&feed, 30, 0xc0);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0); /* the child's copy */
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	feed_free(&feed, 0xc0); /* came after the fork */
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_FREE_UNKNOWN], 1);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
	assert_int_equal(feed_stats(&feed)->frees, 2);
	assert_int_equal(feed_nr_held(&feed), 2); /* 0xb0, 0xc0: the parent's; no copy is listed */
}

static void child_that_changes_first(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_malloc(&feed, 40, 0xa0);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_only_held(&feed)->allocated.pid, 200);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 40);
}

static void grandchildren_have_the_heap_of_their_instant(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_fork(&feed, 300); /* before anything has changed */
	feed_free(&feed, 0xa0);
	feed_fork(&feed, 400);
	feed_as(&feed, 100, 100);
	feed_malloc(&feed, 10, 0xb0);
	feed_as(&feed, 300, 300);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	feed_as(&feed, 400, 400);
	feed_free(&feed, 0xa0); /* its parent had freed it */
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_int_equal(feed_only_anomaly(&feed)->released.pid, 200);
	assert_int_equal(feed_nr_held(&feed), 2);
}

static void parent_that_dies_leaves_the_copy_whole(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_exit(&feed, 100, 100);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_only_held(&feed)->allocated.pid, 100);
}

static void parent_that_execs_leaves_the_copy_whole(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_comm(&feed, 100, 100, true, "other");
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_stats(&feed)->blocks_dropped_by_exec, 1);
}

static void fork_keeps_the_double_free_memory(void **state)
{
	uint64_t first;

	feed_malloc(&feed, 10, 0xa0);
	first = feed_free(&feed, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->released.sequence, first);
}

static void fork_during_anothers_realloc(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0);
	feed_as(&feed, 100, 101);
	feed_fork(&feed, 200);
	feed_as(&feed, 100, 100);
	feed_return(&feed, "realloc", 0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 10);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_stats(&feed)->frees, 1);
}

static void vfork_shares(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_VM | CLONE_VFORK);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_malloc(&feed, 20, 0xb0);
	feed_exit(&feed, 200, 200);
	feed_as(&feed, 100, 100);
	assert_int_equal(feed_only_held(&feed)->address, 0xb0);
	/* It does not end with the child. */
	assert_int_equal(feed_only_held(&feed)->allocated.pid, 100);
	assert_int_equal(feed_only_held(&feed)->allocated.tid, 200);
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_held(&feed), 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->frees, 2);
}

static void vfork_and_exec(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_VM | CLONE_VFORK);
	feed_comm(&feed, 200, 200, true, "ls");
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xa0);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->blocks_dropped_by_exec, 0);
}

static void vfork_before_anything_was_allocated(void **state)
{
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_VM | CLONE_VFORK);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xa0);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void newtask_of_a_thread_or_a_fork_shares_nothing(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_CHILD_SETTID);
	feed_new_thread(&feed, 101);
	feed_newtask(&feed, 101, CLONE_VM | CLONE_THREAD);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_as(&feed, 100, 101);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void exec_starts_anew(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 10, 0xb0);
	feed_new_thread(&feed, 101);
	feed_as(&feed, 100, 101);
	feed_entry(&feed, "malloc", 10, 0, 0);
	feed_comm(&feed, 100, 100, true, "other");
	assert_int_equal(feed_stats(&feed)->blocks_dropped_by_exec, 2);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	assert_int_equal(feed_nr_held(&feed), 0);
	feed_as(&feed, 100, 100);
	feed_malloc(&feed, 30, 0xa0);
	feed_free(&feed, 0xb0);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_FREE_UNKNOWN);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 30);
}

static void exec_by_a_thread_takes_the_process_id(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_new_thread(&feed, 101);
	feed_exit(&feed, 100, 100);
	feed_comm(&feed, 100, 100, true, "other");
	feed_malloc(&feed, 30, 0xa0);
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 30);
}

static void exec_does_not_count_inherited_blocks(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_comm(&feed, 200, 200, true, "other");
	assert_int_equal(feed_stats(&feed)->blocks_dropped_by_exec, 1);
	assert_int_equal(feed_only_held(&feed)->address, 0xa0);
}

static void blocks_of_the_dead_stay_listed(void **state)
{
	const struct heap_block *blocks;

	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_exit(&feed, 200, 200);
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_held(&feed, &blocks), 2);
	assert_int_equal(blocks[0].allocated.pid, 100);
	assert_int_equal(blocks[1].allocated.pid, 200);
}

static void a_pid_used_anew(void **state)
{
	const struct heap_block *blocks;

	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_exit(&feed, 200, 200);
	feed_as(&feed, 100, 100);
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	feed_malloc(&feed, 30, 0xb0); /* the same address, another process */
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_held(&feed, &blocks), 3);
	assert_int_equal(blocks[0].size_bytes, 20);
	assert_int_equal(blocks[1].size_bytes, 10);
	assert_int_equal(blocks[2].size_bytes, 30);
}

static void a_pid_used_anew_whose_exit_was_lost(void **state)
{
	feed_as(&feed, 200, 201);
	feed_malloc(&feed, 20, 0xb0);
	feed_as(&feed, 100, 100);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xb0);
	feed_exit(&feed, 200, 200);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_FREE_UNKNOWN);
	assert_int_equal(feed_only_held(&feed)->size_bytes, 20);
}

static void a_tid_used_anew_in_another_process(void **state)
{
	feed_as(&feed, 100, 105);
	feed_entry(&feed, "malloc", 10, 0, 0);
	feed_as(&feed, 200, 105);
	feed_return(&feed, "malloc", 0xa0);
	feed_finish(&feed);
	assert_false(feed_only_held(&feed)->size_known);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	assert_int_equal(feed_stats(&feed)->returns_without_entry, 1);
}

static void a_process_lives_while_a_thread_does(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_new_thread(&feed, 101);
	feed_exit(&feed, 100, 100); /* main() left by pthread_exit() */
	feed_as(&feed, 100, 101);
	feed_free(&feed, 0xa0);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
}

static void a_process_met_by_a_thread_outlives_it(void **state)
{
	feed_as(&feed, 100, 101);
	feed_malloc(&feed, 10, 0xa0);
	feed_free(&feed, 0xa0);
	feed_exit(&feed, 100, 101);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xa0);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
}

static void a_process_thought_dead_goes_on(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_exit(&feed, 100, 100);
	feed_as(&feed, 100, 102); /* a thread that had not been seen */
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void killed_within_a_call(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_entry(&feed, "realloc", 0xa0, 20, 0);
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->entries_without_return, 1);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void exits_of_strangers(void **state)
{
	feed_exit(&feed, 300, 300);
	feed_comm(&feed, 400, 400, false, "quiet");
	feed_exit(&feed, 400, 400);
	feed_newtask(&feed, 500, CLONE_VM);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->events, 0);
}

static void names_threads(void **state)
{
	feed_comm(&feed, 100, 100, false, "main");
	feed_new_thread(&feed, 101);
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 101), "main");
	feed_comm(&feed, 100, 101, false, "worker-with-a-very-long-name");
	feed_as(&feed, 100, 101);
	feed_fork(&feed, 200);
	feed_exit(&feed, 100, 101);
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 100), "main");
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 101), "worker-with-a-v");
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 200), "worker-with-a-v");
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 999), "");
}

static size_t memory_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Half a second later. */
static void feed_pause(void)
{
	feed.sequence += 50000000;
}

static void feed_child(pid_t child)
{
	feed_as(&feed, 100, 100);
	feed_fork(&feed, child);
	feed_as(&feed, child, child);
	feed_malloc(&feed, 10, 0xb0);
	feed_free(&feed, 0xb0);
	feed_new_thread(&feed, child + 1);
	feed_as(&feed, child, child + 1);
	feed_malloc(&feed, 10, 0xb0);
	feed_free(&feed, 0xb0);
	feed_exit(&feed, child, child + 1);
	feed_exit(&feed, child, child);
}

/* As those of a shell script or a server that runs for days. */
static void ended_processes_and_threads_take_no_memory(void **state)
{
	enum { NR = 100000, KEEPER = 500, MISTAKEN = 600 };
	size_t before = 0;

	feed_comm(&feed, 100, 100, false, "main");
	feed_malloc(&feed, 10, 0xa0);
	/* A child that leaves a block behind, and one of its threads, too. */
	feed_fork(&feed, KEEPER);
	feed_as(&feed, KEEPER, KEEPER);
	feed_malloc(&feed, 20, 0xa0 + 0x10);
	feed_new_thread(&feed, KEEPER + 1);
	feed_comm(&feed, KEEPER, KEEPER + 1, false, "worker");
	feed_as(&feed, KEEPER, KEEPER + 1);
	feed_malloc(&feed, 30, 0xa0 + 0x20);
	feed_exit(&feed, KEEPER, KEEPER + 1);
	feed_exit(&feed, KEEPER, KEEPER);
	/* One that makes a mistake. */
	feed_as(&feed, 100, 100);
	feed_fork(&feed, MISTAKEN);
	feed_comm(&feed, MISTAKEN, MISTAKEN, false, "mistaken");
	feed_as(&feed, MISTAKEN, MISTAKEN);
	feed_malloc(&feed, 10, 0xb0);
	feed_free(&feed, 0xb0);
	feed_free(&feed, 0xb0);
	feed_exit(&feed, MISTAKEN, MISTAKEN);
	for (pid_t i = 0; i < NR; i++) {
		if (i % 1000 == 0)
			feed_pause();
		if (i == NR / 2)
			before = memory_in_use();
		feed_child(1000 + 2 * i);
	}
	/* 1 KB for each would be 50 MB. */
	assert_true(memory_in_use() < before + 25000000);
	assert_int_equal(feed_stats(&feed)->created_tasks, 2 * NR + 3);
	assert_int_equal(feed_stats(&feed)->created_with_events, 2 * NR + 3);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_int_equal(feed_nr_held(&feed), 3);
	assert_string_equal(heap_tracker_comm_of(feed.tracker, KEEPER + 1), "worker");
	assert_string_equal(heap_tracker_process_name(feed.tracker, KEEPER, KEEPER), "main");
	assert_string_equal(heap_tracker_comm_of(feed.tracker, MISTAKEN), "mistaken");
	assert_true(heap_tracker_life(feed.tracker, KEEPER, UINT64_MAX).is_told);
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 1000), "");
}

/* A process begins anew with the same id, again and again, and nobody saw its threads end. */
static void threads_whose_end_was_lost_take_no_memory(void **state)
{
	enum { NR = 100000, CHILD = 700 };
	size_t before = 0;

	/* Only its name is known. */
	feed_comm(&feed, 600, 600, false, "idle");
	for (pid_t i = 0; i < NR; i++) {
		if (i % 1000 == 0)
			feed_pause();
		if (i == NR / 2)
			before = memory_in_use();
		feed_as(&feed, 100, 100);
		feed_fork(&feed, CHILD);
		feed_as(&feed, CHILD, CHILD);
		feed_new_thread(&feed, 1000 + i);
	}
	/* 300 bytes for each would be 15 MB. */
	assert_true(memory_in_use() < before + 7500000);
	feed_finish(&feed);
	assert_string_equal(heap_tracker_comm_of(feed.tracker, 600), "idle");
}

static void feed_window(bool opens)
{
	const struct perf_sample sample = {.origin = feed_origin(&feed), .mark_number = opens};

	assert_int_equal(heap_tracker_window(feed.tracker, &sample), 0);
}

/* Between two windows a process creates one that shares its memory, and does not wait for it. */
static void a_clone_between_windows_hides_no_block(void **state)
{
	struct perf_sample look = {
		.mark_number = LOOK_TOUCHED,
		.args = {[LOOK_ADDRESS] = 0xb0},
	};

	feed_window(true);
	feed_malloc(&feed, 10, 0xa0);
	feed_window(false);
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_VM);
	feed_window(true);
	feed_malloc(&feed, 10, 0xb0);
	look.args[LOOK_ALLOCATED] = feed.sequence * 10;
	feed_window(false);
	look.origin = feed_origin(&feed);
	assert_int_equal(heap_tracker_look(feed.tracker, &look), 0);
	assert_int_equal(feed_stats(&feed)->looks, 1);
	assert_int_equal(feed_stats(&feed)->unknown_looks, 0);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->unobserved_blocks, 1);
	assert_int_equal(feed_only_held(&feed)->address, 0xb0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(child_has_a_copy),
		TEST(child_that_changes_first),
		TEST(grandchildren_have_the_heap_of_their_instant),
		TEST(parent_that_dies_leaves_the_copy_whole),
		TEST(parent_that_execs_leaves_the_copy_whole),
		TEST(fork_keeps_the_double_free_memory),
		TEST(fork_during_anothers_realloc),
		TEST(vfork_shares),
		TEST(vfork_and_exec),
		TEST(vfork_before_anything_was_allocated),
		TEST(newtask_of_a_thread_or_a_fork_shares_nothing),
		TEST(exec_starts_anew),
		TEST(exec_by_a_thread_takes_the_process_id),
		TEST(exec_does_not_count_inherited_blocks),
		TEST(blocks_of_the_dead_stay_listed),
		TEST(a_pid_used_anew),
		TEST(a_pid_used_anew_whose_exit_was_lost),
		TEST(a_tid_used_anew_in_another_process),
		TEST(a_process_lives_while_a_thread_does),
		TEST(a_process_met_by_a_thread_outlives_it),
		TEST(a_process_thought_dead_goes_on),
		TEST(killed_within_a_call),
		TEST(exits_of_strangers),
		TEST(names_threads),
		TEST(ended_processes_and_threads_take_no_memory),
		TEST(threads_whose_end_was_lost_take_no_memory),
		TEST(a_clone_between_windows_hides_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
