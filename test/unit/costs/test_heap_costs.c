/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings that someone made up to keep the parser busy. */
#include "common/clock.h"
#include "parser/windows/followed_blocks.h"
#include "test/support/heap_feed.h"
#include "test/unit/costs/prepared_keys.h"

#define NR 80000
/*
 * It takes about as long as an ordinary recording; a hundred times that, if each looks at all.
 * Under ASan, where memory comes and goes with each process, it takes up to eleven times as long.
 */
#define MAX_LONGER 30

static uint64_t prepared[NR];

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

static void use_prepared_pids(struct feed *feed)
{
	for (pid_t i = 0; i < NR; i++)
		feed_fork(feed, (pid_t)prepared[i]);
}

static void pids_are_prepared_to_collide(void **state)
{
	size_t nr = 0;

	for (pid_t pid = 1; nr < NR; pid++)
		if (is_prepared(pid))
			prepared[nr++] = (uint64_t)pid;
	assert_cheap(use_prepared_pids);
}

static void feed_window(struct feed *feed, bool opens)
{
	const struct perf_sample sample = {.origin = feed_origin(feed), .mark_number = opens};

	assert_int_equal(heap_tracker_window(feed->tracker, &sample), 0);
}

static void use_prepared_addresses(struct feed *feed)
{
	feed_window(feed, true);
	for (pid_t i = 0; i < NR; i++)
		feed_call(feed, "malloc", 64, 0, prepared[i]);
	feed_window(feed, false);
}

/* The blocks outlive their window. */
static void addresses_are_prepared_to_collide(void **state)
{
	size_t nr = 0;

	for (struct follow_key key = {16, 100}; nr < NR; key.address += 16)
		/* clang-tidy 14 takes the macro to read behind the key. */
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
		if (is_prepared(key))
			prepared[nr++] = key.address;
	assert_cheap(use_prepared_addresses);
}

/* A process with many blocks exits again and again, and each time goes on. */
static void exit_again(struct feed *feed)
{
	for (uint64_t i = 1; i <= NR; i++)
		feed_call(feed, "malloc", 64, 0, 16 * i);
	for (int i = 0; i < NR; i++) {
		feed_exit(feed, 100, 100);
		feed_call(feed, "malloc", 64, 0, 0);
	}
	feed_finish(feed);
	assert_int_equal(feed_nr_held(feed), NR);
}

static void a_process_does_not_stay_dead(void **state)
{
	assert_cheap(exit_again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_pids_with_threads_are_used_anew),
		cmocka_unit_test(a_process_ends_many_threads),
		cmocka_unit_test(many_processes_have_no_name),
		cmocka_unit_test(pids_are_prepared_to_collide),
		cmocka_unit_test(addresses_are_prepared_to_collide),
		cmocka_unit_test(a_process_does_not_stay_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
