/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings in segments (docs/segments.md), some of which are not there. */
#include "common/scope.h"
#include "parser/windows/observed_time.h"
#include "report/text/input_advice.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define S   UINT64_C(1000000000)
#define PID 7

struct maker {
	struct perf_data_writer *writer;
	int call, entry, exit, segment, window;
};

static void add(const struct maker *maker, int event, uint64_t time_ns, const uint64_t *fields)
{
	perf_data_sample(maker->writer, &(struct perf_data_sample){.event = event,
								   .pid = PID,
								   .tid = PID,
								   .time_ns = time_ns,
								   .fields = fields});
}

/* Begins segment @number at @time_ns; @lost events were lost before. */
static struct maker begin(uint64_t number, uint64_t time_ns, uint64_t lost)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL)};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	maker.entry = perf_data_add_probe(maker.writer, "calloc", PROBE_ENTRY);
	maker.exit = perf_data_add_probe(maker.writer, "calloc", PROBE_RETURN);
	maker.segment = perf_data_add_event(maker.writer, "leakrec", "segment",
					    "u32 number\nu64 started\nu64 lost\nu64 one_of");
	maker.window = perf_data_add_event(maker.writer, "leakrec", "window", "u32 open\nu64 pace");
	add(&maker, maker.segment, time_ns, (uint64_t[]){number, S, lost, 1});
	return maker;
}

static void window(const struct maker *maker, uint64_t time_ns, uint64_t open)
{
	add(maker, maker->window, time_ns, (uint64_t[]){open, 0});
}

static void allocate(const struct maker *maker, uint64_t time_ns, uint64_t address)
{
	add(maker, maker->call, time_ns, (uint64_t[]){0x7000, 0x400010, 64, address});
}

/* The caller calls analysis_deinit(). */
static void finish(struct maker *makers, size_t nr, struct analysis *ret)
{
	char paths[2][64];
	const char *list[] = {paths[0], paths[1]};
	int fds[2];

	for (size_t i = 0; i < nr; i++) {
		fds[i] = memfd_create("segment", MFD_CLOEXEC);
		assert_true(fds[i] >= 0);
		assert_int_equal(perf_data_write(makers[i].writer, PERF_DATA_FILE, fds[i]), 0);
		perf_data_writer_destroy(makers[i].writer);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
	}
	assert_int_equal(analysis_init(ret, NULL, NULL), 0);
	assert_int_equal(analysis_read(ret, list, nr), 0);
	for (size_t i = 0; i < nr; i++)
		close(fds[i]);
}

static void tells_what_was_lost_before(void **state)
{
	for (uint64_t lost = 0; lost < 2; lost++) {
		struct maker maker = begin(4, 10 * S, lost);
		struct input_advice advice;
		struct analysis analysis;

		allocate(&maker, 11 * S, 0x1000);
		finish(&maker, 1, &analysis);
		input_advice_on_recording(&analysis, &advice);
		assert_int_equal(advice.nr, 1);
		assert_non_null(strstr(advice.lines[0], ", 3 segments, is not here: "));
		assert_int_equal(strstr(advice.lines[0], "; 1 event was lost in it") != NULL, lost);
		analysis_deinit(&analysis);
	}
}

/* What leakrec's table of held blocks had no room for; earlier recordings do not say it. */
static void tells_what_the_state_lacks(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	struct maker maker = {
		.writer = writer,
		.call = perf_data_add_probe(writer, "malloc", PROBE_CALL),
		.segment = perf_data_add_event(writer, "leakrec", "segment",
					       "u32 number\nu64 started\nu64 lost\nu64 one_of\n"
					       "u64 without_stack\nu64 out_of_order"),
	};
	struct input_advice advice;
	struct analysis analysis;

	add(&maker, maker.segment, 10 * S, (uint64_t[]){4, S, 0, 1, 5, 7});
	allocate(&maker, 11 * S, 0x1000);
	finish(&maker, 1, &analysis);
	input_advice_on_recording(&analysis, &advice);
	assert_int_equal(advice.nr, 1);
	assert_non_null(strstr(advice.lines[0], "; up to 5 more are not; 7 events came out of "));
	/* Blocks from before are doubtful. */
	assert_true(loss_windows_overlap(analysis.loss_windows, 5 * S, 11 * S));
	assert_false(loss_windows_overlap(analysis.loss_windows, 11 * S, 12 * S));
	assert_int_equal(analysis.lost, 0);
	analysis_deinit(&analysis);
}

/* The window was open when the second segment began. It may have closed in it, and opened again. */
static void a_missing_segment_is_not_observed(void **state)
{
	for (uint64_t is_open = 0; is_open < 2; is_open++) {
		struct maker makers[] = {begin(1, S, 0), begin(3, 10 * S, 0)};
		const struct observed_time *time;
		struct analysis analysis;

		window(&makers[0], S, 1);
		allocate(&makers[0], 2 * S, 0x1000);
		add(&makers[0], makers[0].entry, 3 * S, (uint64_t[]){0x7200, 1, 32, 0x400030});
		window(&makers[1], 10 * S, is_open);
		add(&makers[1], makers[1].exit, 11 * S, (uint64_t[]){0x7200, 0x400030, 0x2000});
		finish(makers, 2, &analysis);
		time = heap_tracker_observed(analysis.heaps);
		assert_int_equal(observed_time_before(time, 11 * S), (is_open ? 3 : 2) * S);
		assert_int_equal(heap_tracker_stats(analysis.heaps)->entries[ENTRY_WINDOW_CLOSED],
				 1);
		analysis_deinit(&analysis);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_was_lost_before),
		cmocka_unit_test(tells_what_the_state_lacks),
		cmocka_unit_test(a_missing_segment_is_not_observed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
