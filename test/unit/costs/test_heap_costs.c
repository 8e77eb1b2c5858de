/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings that someone made up to keep the parser busy. */
#include "common/clock.h"
#include "test/support/heap_feed.h"

#define NR 80000
/* It takes about as long as an ordinary recording; a hundred times that, if each looks at all. */
#define MAX_LONGER 10

/* The CPU time of @run, in nanoseconds. */
static uint64_t time_of(void (*run)(struct feed *feed))
{
	struct feed feed;
	uint64_t began_ns, took_ns;

	feed_init(&feed, NULL);
	began_ns = clock_process_ns();
	run(&feed);
	took_ns = clock_process_ns() - began_ns;
	feed_deinit(&feed);
	return took_ns;
}

static void fork_all(struct feed *feed)
{
	for (pid_t pid = 2; pid < 2 + NR; pid++)
		feed_fork(feed, pid);
}

static void assert_cheap(void (*run)(struct feed *feed))
{
	uint64_t ordinary_ns = time_of(fork_all), took_ns = time_of(run);

	print_message("%.1f ms, and %.1f ms\n", (double)ordinary_ns / 1e6, (double)took_ns / 1e6);
	assert_true(took_ns < MAX_LONGER * ordinary_ns);
}

/* Each process has a second thread when its pid is used anew. */
static void use_pids_anew(struct feed *feed)
{
	for (pid_t pid = 2; pid < 2 + NR; pid += 2) {
		feed_as(feed, 1, 1);
		feed_fork(feed, pid);
		feed_as(feed, pid, pid);
		feed_new_thread(feed, pid + 1);
	}
	feed_as(feed, 1, 1);
	for (pid_t pid = 2; pid < 2 + NR; pid += 2)
		feed_fork(feed, pid);
}

static void many_pids_with_threads_are_used_anew(void **state)
{
	assert_cheap(use_pids_anew);
}

/* A process of which more and more threads have ended. */
static void end_threads(struct feed *feed)
{
	for (pid_t tid = 200; tid < 200 + NR; tid++) {
		feed_new_thread(feed, tid);
		feed_comm(feed, 100, 100, true, "again");
	}
}

static void a_process_ends_many_threads(void **state)
{
	assert_cheap(end_threads);
}

static void name_all(struct feed *feed)
{
	for (pid_t pid = 2; pid < 2 + NR; pid++)
		feed_fork(feed, pid);
	for (pid_t pid = 2; pid < 2 + NR; pid++)
		assert_string_equal(heap_tracker_process_name(feed->tracker, pid, pid), "");
}

static void many_processes_have_no_name(void **state)
{
	assert_cheap(name_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_pids_with_threads_are_used_anew),
		cmocka_unit_test(a_process_ends_many_threads),
		cmocka_unit_test(many_processes_have_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
