/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frees by which glibc flushes a thread's cache at its exit, and others that look like them. */
#include "test/support/heap_feed.h"

/*
 * The calls of free in glibc 2.36's __malloc_arena_thread_freeres, at their true distance from
 * free.
 */
#define FLUSH_CACHED (feed_function_address(probe_schema_find("free")) + 0x162)
#define FLUSH_CACHE  (feed_function_address(probe_schema_find("free")) + 0x191)
#define CACHE	     0xcac4e0u

static struct feed feed;

static int setup(void **state)
{
	feed_init(&feed, NULL);
	feed_new_thread(&feed, 101);
	feed_as(&feed, 100, 101);
	return 0;
}

static int teardown(void **state)
{
	feed_deinit(&feed);
	return 0;
}

/* The program allocates and frees @nr blocks, which the thread's cache keeps. */
static void use_blocks(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		feed_malloc(&feed, 24, 0xa0 + 32 * i);
	for (uint64_t i = 0; i < nr; i++)
		feed_free(&feed, 0xa0 + 32 * i);
}

static void flush_blocks(uint64_t nr)
{
	feed.caller = FLUSH_CACHED;
	for (uint64_t i = 0; i < nr; i++)
		feed_free(&feed, 0xa0 + 32 * (nr - 1 - i));
}

static void flush_cache(uint64_t address)
{
	feed.caller = FLUSH_CACHE;
	feed_free(&feed, address);
	feed.caller = FEED_PROGRAM;
}

static void check_flushed(uint64_t nr)
{
	size_t nr_listed;

	feed_finish(&feed);
	heap_tracker_anomalies(feed.tracker, &nr_listed);
	assert_int_equal(nr_listed, 0);
	assert_int_equal(feed_nr_anomalies(&feed), 0);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, nr);
}

static void flush_is_nobodys(void **state)
{
	for (int known = 0; known < 2; known++) {
		feed.callers = known;
		feed_new_thread(&feed, 102 + known);
		feed_as(&feed, 100, 102 + known);
		use_blocks(7);
		flush_blocks(7);
		flush_cache(CACHE);
		assert_int_equal(feed_nr_anomalies(&feed), 8); /* until it is seen to exit */
		feed_exit(&feed, 100, 102 + known);
		assert_int_equal(feed_nr_anomalies(&feed), 0);
	}
	check_flushed(16);
	assert_int_equal(feed_stats(&feed)->frees, 14);
}

static void flush_of_an_empty_cache(void **state)
{
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	check_flushed(1);
}

static void flush_cut_off_by_the_recordings_end(void **state)
{
	use_blocks(7);
	flush_blocks(3);
	check_flushed(3);
}

static void flush_cut_off_needs_the_callers(void **state)
{
	feed.callers = false;
	use_blocks(7);
	flush_blocks(3);
	feed_finish(&feed);
	assert_int_equal(feed_nr_anomalies(&feed), 3);
}

static void cache_where_a_block_once_was(void **state)
{
	/* Its free looks like a double free. */
	use_blocks(3);
	flush_blocks(2);
	flush_cache(0xa0);
	feed_exit(&feed, 100, 101);
	check_flushed(3);
}

static void cache_where_a_block_once_was_callers_unknown(void **state)
{
	feed.callers = false;
	use_blocks(3);
	flush_blocks(2);
	flush_cache(0xa0);
	feed_exit(&feed, 100, 101);
	assert_int_equal(feed_nr_anomalies(&feed), 3); /* the process may have died of it */
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0);
	check_flushed(3);
}

static void blocks_from_before_the_recording(void **state)
{
	feed.caller = FLUSH_CACHED;
	feed_free(&feed, 0x7770);
	feed_free(&feed, 0x8880);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	check_flushed(3);
}

static void cached_block_whose_free_was_lost(void **state)
{
	use_blocks(3);
	feed_malloc(&feed, 24, 0x5550);
	feed.caller = FLUSH_CACHED;
	feed_free(&feed, 0xa0);
	feed_free(&feed, 0x5550);
	feed_free(&feed, 0xc0);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	check_flushed(3);
	assert_int_equal(feed_nr_held(&feed), 0);
}

static void detached_thread_frees_tls_after_the_flush(void **state)
{
	for (int known = 0; known < 2; known++) {
		feed.callers = known;
		feed_new_thread(&feed, 102 + known);
		feed_as(&feed, 100, 102 + known);
		feed_malloc(&feed, 0x200, 0x9990);
		use_blocks(3);
		flush_blocks(3);
		flush_cache(CACHE);
		feed.caller = 0x7f0000400000; /* ld.so */
		feed_free(&feed, 0x9990);
		feed.caller = FEED_PROGRAM;
		feed_exit(&feed, 100, 102 + known);
	}
	check_flushed(8);
}

static void fork_of_a_thread_flushes_too(void **state)
{
	use_blocks(2);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	flush_blocks(2);
	flush_cache(CACHE);
	feed_exit(&feed, 200, 200);
	check_flushed(3);
}

static void programs_double_free_before_the_flush(void **state)
{
	uint64_t sequence;

	use_blocks(3);
	sequence = feed_free(&feed, 0xa0);
	flush_blocks(3);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->op.sequence, sequence);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, 4);
}

static void static_programs_double_free_before_the_flush(void **state)
{
	uint64_t sequence;

	/* Its code is near free too, but not in the function that flushes. */
	use_blocks(3);
	feed.caller = FEED_LIBC - 0x2ff0;
	sequence = feed_free(&feed, 0xa0);
	flush_blocks(3);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->op.sequence, sequence);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, 4);
}

static void double_free_that_aborts(void **state)
{
	for (int known = 0; known < 2; known++) {
		pid_t tid = 102 + known;

		feed.callers = known;
		feed_new_thread(&feed, tid);
		feed_as(&feed, 100, tid);
		use_blocks(3);
		feed_free(&feed, 0xa0);
		feed_exit(&feed, 100, tid);
		assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
		if (!known) { /* the process did not abort because of that one */
			feed_as(&feed, 100, 100);
			feed_malloc(&feed, 1, 0x10);
			assert_int_equal(feed_nr_anomalies(&feed), 0);
		}
	}
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
}

static void double_free_that_kills_the_process(void **state)
{
	feed.callers = false;
	use_blocks(3);
	feed_free(&feed, 0xa0);
	feed_exit(&feed, 100, 101);
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, 0);
}

static void main_thread_flushes_nothing(void **state)
{
	feed_as(&feed, 100, 100);
	feed.callers = false;
	feed_free(&feed, 0x7770);
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_FREE_UNKNOWN);
}

static void allocation_after_it_means_no_flush(void **state)
{
	use_blocks(3);
	feed.caller = FLUSH_CACHED;
	feed_free(&feed, 0xa0);
	feed.caller = FEED_PROGRAM;
	feed_malloc(&feed, 24, 0x9990);
	feed_free(&feed, 0x9990);
	feed_exit(&feed, 100, 101);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->kind, ANOMALY_DOUBLE_FREE);
}

static void frees_between_end_a_run(void **state)
{
	feed.callers = false;
	use_blocks(3);
	feed_malloc(&feed, 24, 0x9990);
	feed_free(&feed, 0xa0); /* the program's error */
	feed_free(&feed, 0x9990);
	flush_blocks(3);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	feed_finish(&feed);
	assert_int_equal(feed_only_anomaly(&feed)->address, 0xa0);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, 4);
}

static void attached_thread_that_frees_old_blocks(void **state)
{
	feed_free(&feed, 0x7770);
	feed_free(&feed, 0x8880);
	flush_cache(CACHE);
	feed_exit(&feed, 100, 101);
	feed_finish(&feed);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_FREE_UNKNOWN], 2);
	assert_int_equal(feed_stats(&feed)->thread_exit_frees, 1);
}

static void threads_that_flush_at_once(void **state)
{
	feed_new_thread(&feed, 102);
	use_blocks(4);
	for (uint64_t i = 0; i < 4; i++) {
		feed_as(&feed, 100, 101 + (i & 1));
		feed.caller = FLUSH_CACHED;
		feed_free(&feed, 0xa0 + 32 * i);
	}
	for (pid_t tid = 101; tid <= 102; tid++) {
		feed_as(&feed, 100, tid);
		flush_cache(CACHE + (uint64_t)tid);
		feed_exit(&feed, 100, tid);
	}
	check_flushed(6);
}

/* Withdrawn anomalies leave their indices to others, which are sorted by time in the end. */
static void places_are_used_anew(void **state)
{
	const struct heap_anomaly *list;
	size_t nr;

	use_blocks(3);
	flush_blocks(3);
	flush_cache(CACHE);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0x111);
	feed_exit(&feed, 100, 101);
	feed_free(&feed, 0x222);
	feed_free(&feed, 0x333);
	feed_finish(&feed);
	list = heap_tracker_anomalies(feed.tracker, &nr);
	assert_int_equal(nr, 3);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(list[i].address, 0x111 * (i + 1));
}

static void what_is_too_much_is_only_counted(void **state)
{
	size_t nr;

	for (uint64_t i = 0; i < 20000; i++)
		feed_free(&feed, 0x10000 + 16 * i);
	feed_malloc(&feed, 24, 0xa0);
	feed_free(&feed, 0xa0);
	feed_free(&feed, 0xa0);
	feed_finish(&feed);
	heap_tracker_anomalies(feed.tracker, &nr);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_FREE_UNKNOWN], 20000);
	assert_int_equal(feed_stats(&feed)->anomalies[ANOMALY_DOUBLE_FREE], 1);
	assert_int_equal(nr + heap_tracker_unlisted(feed.tracker)[ANOMALY_FREE_UNKNOWN], 20001);
	assert_in_range(nr, 1000, 20000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flush_is_nobodys),
		TEST(flush_of_an_empty_cache),
		TEST(flush_cut_off_by_the_recordings_end),
		TEST(flush_cut_off_needs_the_callers),
		TEST(cache_where_a_block_once_was),
		TEST(cache_where_a_block_once_was_callers_unknown),
		TEST(blocks_from_before_the_recording),
		TEST(cached_block_whose_free_was_lost),
		TEST(detached_thread_frees_tls_after_the_flush),
		TEST(fork_of_a_thread_flushes_too),
		TEST(programs_double_free_before_the_flush),
		TEST(static_programs_double_free_before_the_flush),
		TEST(double_free_that_aborts),
		TEST(double_free_that_kills_the_process),
		TEST(main_thread_flushes_nothing),
		TEST(allocation_after_it_means_no_flush),
		TEST(frees_between_end_a_run),
		TEST(attached_thread_that_frees_old_blocks),
		TEST(threads_that_flush_at_once),
		TEST(places_are_used_anew),
		TEST(what_is_too_much_is_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
