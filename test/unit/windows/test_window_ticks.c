/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a live parser says of a recording in windows while it goes on: 20 ms of each second, in
 * which 100 of 200 blocks of one stack stay. leakrec looks at four of them, as late as on a busy
 * machine: a second after their window. That the others are outside the sample is certain only half
 * a minute later.
 */
#include "common/scope.h"
#include "parser/verdicts/leak_report.h"
#include "parser/windows/followed_blocks.h"
#include "parser/windows/observed_time.h"
#include "test/support/perf_data_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS	UINT64_C(1000000)
#define S	(1000 * MS)
#define PID	7
#define WINDOWS UINT64_C(605)
#define STAYING UINT64_C(100) /* in a window */
#define WATCHED UINT64_C(4)
#define EACH_NS (20 * MS / STAYING)
#define RATE	5000.0 /* of blocks that stay, in a second of real time */

static struct perf_data_writer *writer;
static int call, release, recording, window, look;

static void add(int event, uint64_t time_ns, const uint64_t *fields)
{
	perf_data_sample(writer, &(struct perf_data_sample){.event = event,
							    .pid = PID,
							    .tid = PID,
							    .time_ns = time_ns,
							    .fields = fields});
}

static void allocate(uint64_t time_ns, uint64_t address)
{
	add(call, time_ns, (uint64_t[]){0x9000, 0x4000, 48, address});
}

/* Looks at a block about 1, 2, 4, ... seconds after its window. */
static void follow(uint64_t address, uint64_t allocated_ns)
{
	enum look_state state = LOOK_TOUCHED;

	for (uint64_t wait_ns = S; allocated_ns + wait_ns < S + WINDOWS * S; wait_ns *= 2) {
		add(look, allocated_ns + wait_ns, (uint64_t[]){state, address, allocated_ns});
		state = LOOK_UNTOUCHED;
	}
}

static void add_window(uint64_t open_ns, uint64_t number)
{
	add(window, open_ns, (uint64_t[]){1});
	for (uint64_t i = 0; i < STAYING; i++) {
		uint64_t at_ns = open_ns + 1 + i * EACH_NS;
		uint64_t address = 0x100000 + 0x100 * (number * STAYING + i);

		allocate(at_ns, address);
		if ((i + 37 * number) % (STAYING / WATCHED) == 0)
			follow(address, at_ns);
		allocate(at_ns + EACH_NS / 4, 0x10000);
		add(release, at_ns + EACH_NS / 2, (uint64_t[]){0x7100, 0x10000, 0x400020});
	}
	add(window, open_ns + 20 * MS, (uint64_t[]){0});
}

/* Windows open so long after each second of the recording. */
static void make(uint64_t after_ns)
{
	uint64_t begin = 0, end = 1;

	writer = perf_data_writer_create(NULL);
	call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	release = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	recording = perf_data_add_event(writer, "leakrec", "recording", "u32 end");
	window = perf_data_add_event(writer, "leakrec", "window", "u32 open");
	look = perf_data_add_event(writer, "leakrec", "look",
				   "u32 state\nu64 address\nu64 allocated");
	add(recording, S, &begin);
	for (uint64_t i = 0; i < WINDOWS; i++)
		add_window(S + i * S + after_ns, i);
	add(recording, S + WINDOWS * S, &end);
}

static struct analysis analysis;
static uint64_t nr_judged;

static void assert_near(double value, double expected, double share)
{
	if (fabs(value / expected - 1) > share)
		fail_msg("after %d s: %g is not about %g", (int)(analysis.ticks.at_ns / S), value,
			 expected);
}

/* All of an open window are listed: they stand for themselves, and others for many. */
static void check_open_window(const struct leak_report *report)
{
	const struct observed_time *observed = heap_tracker_observed(analysis.heaps);
	uint64_t open_ns = observed->windows[observed->nr - 1].open_ns;

	for (size_t i = 0; observed->is_open && i < report->verdicts.nr_blocks; i++) {
		double stands_for = report->verdicts.blocks[i].stands_for;

		if (report->held[i].allocated.time_ns >= open_ns)
			assert_near(stands_for, 1, 1e-6);
		else
			assert_true(stands_for > 100);
	}
}

static int judge(void *context)
{
	static const struct leaks_options all = {0};
	double length_s = (double)analysis.ticks.at_ns / (double)S;
	const struct site_verdict *first;
	struct leak_report report;

	if (length_s > 60 && length_s < 595)
		return 0;
	assert_int_equal(leak_report_init(&report, &analysis, &all), 0);
	assert_int_equal(report.nr_causes, 1);
	first = &report.verdicts.causes[0].verdict;
	assert_near(report.estimate.blocks, RATE * length_s, 0.1);
	assert_near(first->stays, 0.5, 0.1);
	/* Before, too few blocks have had three looks. */
	if (length_s >= 60) {
		assert_int_equal(first->verdict, VERDICT_GROWTH);
		assert_near(first->rate.blocks_per_s, RATE, 0.25);
	}
	check_open_window(&report);
	nr_judged++;
	leak_report_deinit(&report);
	return 0;
}

static void read_back(uint64_t every_ns)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	analysis.ticks = (struct analysis_ticks){.every_ns = every_ns, .on_tick = judge};
	nr_judged = 0;
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	analysis_deinit(&analysis);
}

static void the_sample_is_known_at_once(void **state)
{
	make(300 * MS);
	read_back(60 * S);
	assert_int_equal(nr_judged, 2);
}

/* Nobody can have looked yet at what the last window has left. */
static void the_last_window_has_no_looks_yet(void **state)
{
	make(300 * MS);
	read_back(5 * S);
	assert_int_equal(nr_judged, 12 + 3);
}

/* Each tick comes while a window is open. */
static void all_blocks_of_an_open_window_are_known(void **state)
{
	make(990 * MS);
	read_back(5 * S);
	assert_int_equal(nr_judged, 12 + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_known_at_once),
		cmocka_unit_test(the_last_window_has_no_looks_yet),
		cmocka_unit_test(all_blocks_of_an_open_window_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
