/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings in windows: leakrec:window, leakrec:look, and what the heaps make of them. */
#include "common/scope.h"
#include "parser/analysis/analysis.h"
#include "parser/windows/followed_blocks.h"
#include "parser/windows/followed_clock.h"
#include "test/support/perf_data_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define S   (1000 * MS)
#define PID 7

struct maker {
	struct perf_data_writer *writer;
	int call, release, recording, window, look, entry, exit;
	uint64_t pace; /* of the windows that close */
};

static struct maker make(void)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL)};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	maker.release = perf_data_add_probe(maker.writer, "free", PROBE_ENTRY);
	maker.entry = perf_data_add_probe(maker.writer, "calloc", PROBE_ENTRY);
	maker.exit = perf_data_add_probe(maker.writer, "calloc", PROBE_RETURN);
	maker.recording = perf_data_add_event(maker.writer, "leakrec", "recording", "u32 end");
	maker.window = perf_data_add_event(maker.writer, "leakrec", "window", "u32 open\nu64 pace");
	maker.look = perf_data_add_event(maker.writer, "leakrec", "look",
					 "u32 state\nu64 address\nu64 allocated");
	return maker;
}

static void add(const struct maker *maker, int event, uint64_t time_ns, const uint64_t *fields)
{
	perf_data_sample(maker->writer, &(struct perf_data_sample){.event = event,
								   .pid = PID,
								   .tid = PID,
								   .time_ns = time_ns,
								   .fields = fields});
}

static void bound(const struct maker *maker, uint64_t time_ns, uint64_t end)
{
	add(maker, maker->recording, time_ns, &end);
}

static void window(const struct maker *maker, uint64_t time_ns, uint64_t open)
{
	add(maker, maker->window, time_ns, (uint64_t[]){open, open ? 0 : maker->pace});
}

static void allocate(const struct maker *maker, uint64_t time_ns, uint64_t address)
{
	add(maker, maker->call, time_ns, (uint64_t[]){0x7000, 0x400010, 64, address});
}

static void release(const struct maker *maker, uint64_t time_ns, uint64_t address)
{
	add(maker, maker->release, time_ns, (uint64_t[]){0x7100, address, 0x400020});
}

static void look(const struct maker *maker, uint64_t time_ns, uint64_t address,
		 uint64_t allocated_ns, enum look_state state)
{
	add(maker, maker->look, time_ns, (uint64_t[]){state, address, allocated_ns});
}

/* Reads the recording; the caller calls analysis_deinit(). */
static const struct heap_tracker_stats *finish(struct maker *maker, struct analysis *ret)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(maker->writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(maker->writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(ret, NULL, NULL), 0);
	assert_int_equal(analysis_read(ret, (const char *[]){path}, 1), 0);
	return heap_tracker_stats(ret->heaps);
}

static void assert_held(struct analysis *analysis, const uint64_t *addresses, size_t nr_expected)
{
	const struct heap_block *held;
	size_t nr;

	assert_int_equal(heap_tracker_held(analysis->heaps, &held, &nr), 0);
	assert_int_equal(nr, nr_expected);
	for (size_t i = 0; i < nr && i < nr_expected; i++)
		assert_int_equal(held[i].address, addresses[i]);
}

static const struct site *only_site(const struct analysis *analysis)
{
	size_t nr;
	const struct site *sites = site_stats_list(heap_tracker_sites(analysis->heaps), &nr);

	assert_int_equal(nr, 1);
	return sites;
}

/* Three blocks outlive a window: one stays, one goes, and nobody looks at one. */
static void follows_the_sample_only(void **state)
{
	struct maker maker = make();
	struct analysis analysis;
	const struct heap_tracker_stats *stats;
	const struct followed_block *followed;
	const struct heap_block *held;
	const struct site *site;
	size_t nr;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, S + 2 * MS, 0x2000);
	allocate(&maker, S + 3 * MS, 0x3000);
	allocate(&maker, S + 4 * MS, 0x4000);
	release(&maker, S + 5 * MS, 0x4000);
	window(&maker, S + 20 * MS, 0);
	look(&maker, 2 * S, 0x1000, S + 1 * MS, LOOK_TOUCHED);
	look(&maker, 2 * S, 0x2000, S + 2 * MS, LOOK_TOUCHED);
	look(&maker, 4 * S, 0x1000, S + 1 * MS, LOOK_UNTOUCHED);
	look(&maker, 4 * S, 0x2000, S + 2 * MS, LOOK_GONE);
	look(&maker, 8 * S, 0x1000, S + 1 * MS, LOOK_UNTOUCHED);
	/* Of no block that is known: another window's, and no state. */
	look(&maker, 8 * S, 0x1000, 5 * S, LOOK_GONE);
	look(&maker, 8 * S, 0x1000, S + 1 * MS, 0);
	bound(&maker, 9 * S, 1);
	stats = finish(&maker, &analysis);
	assert_held(&analysis, (uint64_t[]){0x1000}, 1);
	assert_int_equal(heap_tracker_held(analysis.heaps, &held, &nr), 0);
	followed = heap_tracker_followed(analysis.heaps, held);
	assert_non_null(followed);
	assert_int_equal(followed->seen_ns, 8 * S);
	assert_int_equal(followed->nr_looks, 3);
	assert_int_equal(followed->nr_untouched, 2);
	assert_int_equal(stats->unobserved_blocks, 1);
	assert_int_equal(stats->followed_blocks, 2);
	assert_int_equal(stats->gone_blocks, 1);
	assert_int_equal(stats->looks, 5);
	assert_int_equal(stats->unknown_looks, 2);
	site = only_site(&analysis);
	assert_int_equal(site->allocations, 4);
	assert_int_equal(site->frees, 2);
	assert_int_equal(site->unobserved, 1);
	assert_int_equal(site_held_blocks(site), 1);
	assert_int_equal(site->held_bytes, 64);
	assert_int_equal(site->history->windows->outlived[0], 3);
	assert_int_equal(site->history->windows->followed[0], 2);
	/* The freed ones: one after 1 ms, one when it was found gone. */
	assert_int_equal(lifetime_sketch_count(&site->history->lifetimes, lifetime_bucket(MS)), 1);
	assert_int_equal(
		lifetime_sketch_count(&site->history->lifetimes, lifetime_bucket(3 * S - 2 * MS)),
		1);
	analysis_deinit(&analysis);
}

/* Two blocks are found gone. They were 19 and 9 ms old when their window closed. */
static void tells_how_old_blocks_were_at_the_close(void **state)
{
	struct maker maker = make();
	const struct site_windows *windows;
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, S + 11 * MS, 0x2000);
	window(&maker, S + 20 * MS, 0);
	look(&maker, 2 * S, 0x1000, S + 1 * MS, LOOK_GONE);
	look(&maker, 2 * S, 0x2000, S + 11 * MS, LOOK_GONE);
	bound(&maker, 9 * S, 1);
	finish(&maker, &analysis);
	assert_int_equal(only_site(&analysis)->frees, 2);
	windows = only_site(&analysis)->history->windows;
	assert_int_equal(lifetime_sketch_count(&windows->late[6], lifetime_bucket(S - 11 * MS)), 1);
	assert_int_equal(lifetime_sketch_count(&windows->late[7], lifetime_bucket(S - 1 * MS)), 1);
	assert_int_equal(lifetime_sketch_total(&windows->late_at_close), 2);
	assert_int_equal(lifetime_sketch_count(&windows->late_at_close, lifetime_bucket(9 * MS)),
			 1);
	analysis_deinit(&analysis);
}

/* Nothing is unexpected about a block whose allocation or release came between two windows. */
static void expects_what_windows_do_not_show(void **state)
{
	struct maker maker = make();
	const struct heap_tracker_stats *stats;
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, S + 2 * MS, 0x2000);
	release(&maker, S + 3 * MS, 0x2000);
	window(&maker, S + 20 * MS, 0);
	window(&maker, 2 * S, 1);
	release(&maker, 2 * S + 1 * MS, 0x9000);  /* allocated between them */
	release(&maker, 2 * S + 2 * MS, 0x2000);  /* allocated again between them */
	allocate(&maker, 2 * S + 3 * MS, 0x1000); /* freed between them */
	window(&maker, 2 * S + 20 * MS, 0);
	bound(&maker, 3 * S, 1);
	stats = finish(&maker, &analysis);
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (i != ANOMALY_FREE_UNKNOWN)
			assert_int_equal(stats->anomalies[i], 0);
	assert_int_equal(stats->unobserved_frees, 2);
	assert_int_equal(only_site(&analysis)->vanished, 0);
	assert_held(&analysis, NULL, 0);
	analysis_deinit(&analysis);
}

/* Within a window, the same is unexpected. */
static void expects_more_within_a_window(void **state)
{
	struct maker maker = make();
	const struct heap_tracker_stats *stats;
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, S + 2 * MS, 0x1000);
	release(&maker, S + 3 * MS, 0x1000);
	release(&maker, S + 4 * MS, 0x1000);
	window(&maker, S + 20 * MS, 0);
	bound(&maker, 3 * S, 1);
	stats = finish(&maker, &analysis);
	assert_int_equal(stats->anomalies[ANOMALY_STILL_HELD], 1);
	assert_int_equal(stats->anomalies[ANOMALY_DOUBLE_FREE], 1);
	analysis_deinit(&analysis);
}

/*
 * A later window shows the end of a block before its first look. Only the look tells that it is in
 * the sample; without one, its end must not count, because it would not have been seen otherwise.
 */
static void counts_an_end_only_in_the_sample(void **state)
{
	for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
		struct maker maker = make();
		const struct site *site;
		struct analysis analysis;

		bound(&maker, S, 0);
		window(&maker, S, 1);
		allocate(&maker, S + 1 * MS, 0x1000);
		window(&maker, S + 20 * MS, 0);
		window(&maker, S + 500 * MS, 1);
		if (is_sampled)
			release(&maker, S + 501 * MS, 0x1000);
		else
			allocate(&maker, S + 501 * MS, 0x1000);
		window(&maker, S + 520 * MS, 0);
		if (is_sampled)
			look(&maker, 2 * S, 0x1000, S + 1 * MS, LOOK_GONE);
		bound(&maker, 3 * S, 1);
		finish(&maker, &analysis);
		site = only_site(&analysis);
		assert_held(&analysis, NULL, 0);
		assert_int_equal(site->frees, is_sampled);
		assert_int_equal(site->unobserved, is_sampled ? 0 : 2);
		if (is_sampled)
			assert_int_equal(lifetime_sketch_count(&site->history->lifetimes,
							       lifetime_bucket(500 * MS)),
					 1);
		analysis_deinit(&analysis);
	}
}

/* A recording of one window, with one block that it looks at once. */
static void follow_a_block(struct maker *maker)
{
	bound(maker, S, 0);
	window(maker, S, 1);
	allocate(maker, S + 1 * MS, 0x1000);
	window(maker, S + 20 * MS, 0);
	look(maker, 2 * S, 0x1000, S + 1 * MS, LOOK_TOUCHED);
}

/* A block with looks ends with the event that shows it. */
static void ends_a_followed_block(void **state)
{
	for (int by_release = 0; by_release < 2; by_release++) {
		struct maker maker = make();
		const struct site *site;
		struct analysis analysis;

		follow_a_block(&maker);
		window(&maker, 3 * S, 1);
		if (by_release)
			release(&maker, 3 * S + MS, 0x1000);
		else
			allocate(&maker, 3 * S + MS, 0x1000);
		window(&maker, 3 * S + 20 * MS, 0);
		look(&maker, 4 * S, 0x1000, S + 1 * MS, LOOK_UNTOUCHED); /* too late */
		bound(&maker, 9 * S, 1);
		assert_int_equal(finish(&maker, &analysis)->unknown_looks, 1);
		site = only_site(&analysis);
		assert_int_equal(site->frees, 1);
		assert_int_equal(site_held_blocks(site), 0);
		assert_int_equal(
			lifetime_sketch_count(&site->history->lifetimes, lifetime_bucket(2 * S)),
			1);
		analysis_deinit(&analysis);
	}
}

/* Calls that a window cuts off are not paired with later ones, and are no inconsistency. */
static void cuts_off_open_calls(void **state)
{
	struct maker maker = make();
	const struct heap_tracker_stats *stats;
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	add(&maker, maker.entry, S + 19 * MS, (uint64_t[]){0x7000, 1, 64, 0x400010});
	window(&maker, S + 20 * MS, 0);
	window(&maker, 2 * S, 1);
	add(&maker, maker.exit, 2 * S + MS, (uint64_t[]){0x7000, 0x400010, 0x1000});
	window(&maker, 2 * S + 20 * MS, 0);
	bound(&maker, 3 * S, 1);
	stats = finish(&maker, &analysis);
	assert_int_equal(stats->entries[ENTRY_WINDOW_CLOSED], 1);
	assert_int_equal(stats->returns_without_entry, 1);
	assert_int_equal(stats->returns_at_start, 1);
	analysis_deinit(&analysis);
}

/* A quiet program is recorded all the time. Its blocks need no looks. */
static void keeps_the_blocks_of_a_window_that_lasts(void **state)
{
	struct maker maker = make();
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, 60 * S, 0x2000);
	window(&maker, 100 * S, 0);
	bound(&maker, 100 * S + MS, 1);
	finish(&maker, &analysis);
	assert_held(&analysis, (uint64_t[]){0x1000, 0x2000}, 2);
	analysis_deinit(&analysis);
}

/* A window may be open when leakrec is killed. */
static void keeps_the_blocks_of_an_open_window(void **state)
{
	struct maker maker = make();
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	window(&maker, S + 20 * MS, 0);
	window(&maker, 2 * S, 1);
	allocate(&maker, 2 * S + MS, 0x2000);
	finish(&maker, &analysis);
	assert_held(&analysis, (uint64_t[]){0x2000}, 1);
	analysis_deinit(&analysis);
}

/* If no window has closed, the open one stands for the time before it, too. */
static void an_open_window_may_be_all_that_is_known(void **state)
{
	struct maker maker = make();
	struct followed_clock clock;
	struct analysis analysis;

	bound(&maker, S, 0);
	window(&maker, 51 * S, 1);
	allocate(&maker, 51 * S + MS, 0x1000);
	allocate(&maker, 101 * S, 0x2000);
	finish(&maker, &analysis);
	assert_held(&analysis, (uint64_t[]){0x1000, 0x2000}, 2);
	followed_clock_init(&clock, heap_tracker_observed(analysis.heaps), only_site(&analysis), S,
			    101 * S);
	assert_int_equal(lround(followed_clock_stands_for(&clock, 51 * S + MS)), 2);
	assert_int_equal(lround(followed_clock_at(&clock, 101 * S)), 50);
	analysis_deinit(&analysis);
}

/* Blocks without looks are forgotten while the recording goes on. */
static void forgets(void **state)
{
	struct maker maker = make();
	struct analysis analysis;
	uint64_t at = S;

	bound(&maker, S, 0);
	for (int i = 0; i < 100; i++, at += S) {
		window(&maker, at, 1);
		for (uint64_t k = 0; k < 10; k++)
			allocate(&maker, at + k, 0x1000 * (10 * (uint64_t)i + k + 1));
		window(&maker, at + 20 * MS, 0);
	}
	/* The recording was cut off here, so that nothing is settled by its end. */
	{
		_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
		struct perf_consumer consumer;
		struct perf_input_stats input = {0};

		assert_int_equal(perf_data_write(maker.writer, PERF_DATA_FILE, fd), 0);
		perf_data_writer_destroy(maker.writer);
		assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
		consumer = analysis_consumer(&analysis);
		assert_int_equal(perf_input_read(fd, "recording", &consumer, &input), 0);
	}
	assert_true(heap_tracker_held_memory(analysis.heaps, PID).blocks <= 320);
	assert_true(heap_tracker_stats(analysis.heaps)->unobserved_blocks >= 680);
	assert_held(&analysis, NULL, 0);
	assert_int_equal(analysis_finish(&analysis, 0), 0);
	/* The last window closed where the recording ends. */
	assert_int_equal(only_site(&analysis)->unobserved, 990);
	assert_int_equal(site_held_blocks(only_site(&analysis)), 10);
	analysis_deinit(&analysis);
}

/* What a process held when it exited is known as far as it was seen. */
static void ends_with_the_process(void **state)
{
	struct maker maker = make();
	struct analysis analysis;

	perf_data_fork(maker.writer, PID, PID, 1, 1, S - MS);
	bound(&maker, S, 0);
	window(&maker, S, 1);
	allocate(&maker, S + 1 * MS, 0x1000);
	allocate(&maker, S + 1 * MS, 0x2000);
	window(&maker, S + 20 * MS, 0);
	look(&maker, 2 * S, 0x1000, S + 1 * MS, LOOK_TOUCHED);
	perf_data_exit(maker.writer, PID, PID, 3 * S);
	window(&maker, 4 * S, 1);
	window(&maker, 4 * S + 20 * MS, 0);
	bound(&maker, 50 * S, 1);
	finish(&maker, &analysis);
	assert_held(&analysis, (uint64_t[]){0x1000}, 1);
	assert_int_equal(only_site(&analysis)->unobserved, 1);
	assert_int_equal(site_held_blocks(only_site(&analysis)), 1);
	analysis_deinit(&analysis);
}

/* What a process held when it executed another program has ended, and does not end again. */
static void ends_with_the_program(void **state)
{
	struct maker maker = make();
	const struct heap_tracker_stats *stats;
	const struct site *site;
	struct analysis analysis;

	follow_a_block(&maker);
	perf_data_comm(maker.writer, PID, PID, 3 * S, "other", true);
	look(&maker, 4 * S, 0x1000, S + 1 * MS, LOOK_GONE);
	bound(&maker, 50 * S, 1);
	stats = finish(&maker, &analysis);
	site = only_site(&analysis);
	assert_int_equal(stats->gone_blocks, 0);
	assert_int_equal(site->dropped, 1);
	assert_int_equal(site->frees, 0);
	assert_int_equal(site_held_blocks(site), 0);
	assert_int_equal(site->held_bytes, 0);
	analysis_deinit(&analysis);
}

/* --- the clock --- */

/* One window at the beginning stands for all time, though the site's periods are shorter. */
static void assert_stands_for(uint64_t pace, unsigned int expected)
{
	struct maker maker = make();
	struct followed_clock clock;
	struct analysis analysis;

	maker.pace = pace;
	bound(&maker, S, 0);
	window(&maker, S, 1);
	for (uint64_t i = 0; i < 20; i++) {
		allocate(&maker, S + i * MS, 0x1000 * (i + 1));
		look(&maker, 2 * S, 0x1000 * (i + 1), S + i * MS, LOOK_TOUCHED);
	}
	window(&maker, S + 20 * MS, 0);
	bound(&maker, 101 * S, 1);
	finish(&maker, &analysis);
	followed_clock_init(&clock, heap_tracker_observed(analysis.heaps), only_site(&analysis), S,
			    101 * S);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(followed_clock_stands_for(&clock, S + i * MS), expected);
	/* One that a segment's state lists, of a window that was open there. */
	assert_int_equal(followed_clock_stands_for(&clock, S - MS), 1);
	analysis_deinit(&analysis);
}

static void stands_for_all_time(void **state)
{
	assert_stands_for(0, 5000);
	assert_stands_for(1000, 5000);
	/* The program was slowed down to a tenth. */
	assert_stands_for(100, 50000);
}

/* A segment that begins between windows. Without the sample that says so, all was observed. */
static void begins_between_windows(void **state)
{
	for (uint64_t nr = 0; nr < 2; nr++) {
		struct maker maker = make();
		struct analysis analysis;

		bound(&maker, S, 0);
		window(&maker, S, 0);
		if (nr) {
			window(&maker, 50 * S, 1);
			window(&maker, 51 * S, 0);
		}
		bound(&maker, 101 * S, 1);
		finish(&maker, &analysis);
		assert_true(analysis_is_in_windows(&analysis));
		assert_int_equal(heap_tracker_observed(analysis.heaps)->nr_opened, nr);
		assert_int_equal(lround(100 * analysis_observed_share(&analysis)), nr);
		analysis_deinit(&analysis);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_between_windows),
		cmocka_unit_test(follows_the_sample_only),
		cmocka_unit_test(tells_how_old_blocks_were_at_the_close),
		cmocka_unit_test(expects_what_windows_do_not_show),
		cmocka_unit_test(expects_more_within_a_window),
		cmocka_unit_test(counts_an_end_only_in_the_sample),
		cmocka_unit_test(ends_a_followed_block),
		cmocka_unit_test(cuts_off_open_calls),
		cmocka_unit_test(keeps_the_blocks_of_a_window_that_lasts),
		cmocka_unit_test(keeps_the_blocks_of_an_open_window),
		cmocka_unit_test(an_open_window_may_be_all_that_is_known),
		cmocka_unit_test(forgets),
		cmocka_unit_test(ends_with_the_process),
		cmocka_unit_test(ends_with_the_program),
		cmocka_unit_test(stands_for_all_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
