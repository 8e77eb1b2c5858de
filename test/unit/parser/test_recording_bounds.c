/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec:recording: where a recording begins and ends, whatever its targets do. */
#include "common/scope.h"
#include "parser/analysis/analysis.h"
#include "test/support/perf_data_writer.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define NONE UINT64_MAX
#define FAR  (UINT64_C(1) << 62)

/* A file with leakrec's bounds at @begin_ns and @end_ns (NONE: without), and blocks at @times. */
struct file {
	uint64_t begin_ns, end_ns;
	uint64_t times[4]; /* ended by 0 */
};

static void add_bound(struct perf_data_writer *writer, int event, uint64_t time_ns, uint64_t is_end)
{
	if (time_ns != NONE)
		perf_data_sample(writer, &(struct perf_data_sample){.event = event,
								    .pid = 1,
								    .tid = 1,
								    .time_ns = time_ns,
								    .fields = &is_end});
}

static int write_file(const struct file *file, char ret_path[64])
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	/* As in a recording of all processes: probes of the same system. */
	int malloc_call =
		perf_data_add_event(writer, "leakrec", "malloc_call",
				    "u64 __probe_func\nu64 __probe_ret_ip\nu64 bytes\nu64 ret");
	int recording = perf_data_add_event(writer, "leakrec", "recording", "u32 end");
	int fd = memfd_create("recording", MFD_CLOEXEC);

	add_bound(writer, recording, file->begin_ns, 0);
	for (size_t i = 0; file->times[i]; i++) {
		const uint64_t call[] = {0x7000, 0x400010, 100, 0x5000 + 64 * file->times[i]};

		perf_data_sample(writer, &(struct perf_data_sample){.event = malloc_call,
								    .pid = 1,
								    .tid = 1,
								    .time_ns = file->times[i],
								    .fields = call});
	}
	add_bound(writer, recording, file->end_ns, 1);
	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* The times that an observer is told. */
static char told[256];

static void note_time(void *context, uint64_t time_ns)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, " %" PRIu64, time_ns);
}

static void ignore_change(void *context, const struct heap_change *change)
{
}

static struct analysis read_files(const struct file *files, size_t nr, uint64_t until_ns)
{
	const struct heap_observer observer = {.on_change = ignore_change, .on_time = note_time};
	struct analysis analysis;
	char paths[2][64];
	const char *list[] = {paths[0], paths[1]};
	int fds[2];

	told[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		fds[i] = write_file(&files[i], paths[i]);
	assert_int_equal(analysis_init(&analysis, NULL, &observer), 0);
	analysis.until_ns = until_ns;
	assert_int_equal(analysis_read(&analysis, list, nr), 0);
	for (size_t i = 0; i < nr; i++)
		close(fds[i]);
	return analysis;
}

static void assert_times(struct analysis analysis, uint64_t start_ns, uint64_t end_ns)
{
	assert_int_equal(analysis.start_ns, start_ns);
	assert_int_equal(analysis.end_ns, end_ns);
	assert_int_equal(analysis.input.out_of_order, 0);
	analysis_deinit(&analysis);
}

static void bounds_are_the_recording_s(void **state)
{
	const struct file file = {100, 900, {200, 300}};
	struct analysis analysis = read_files(&file, 1, 0);

	assert_int_equal(site_stats_origin(heap_tracker_sites(analysis.heaps)), 100);
	assert_string_equal(told, " 100 900");
	assert_times(analysis, 100, 900);
}

static void without_events(void **state)
{
	assert_times(read_files(&(struct file){100, 900, {0}}, 1, 0), 100, 900);
}

static void without_bounds_events_count(void **state)
{
	struct analysis analysis = read_files(&(struct file){NONE, NONE, {200, 300}}, 1, 0);

	assert_string_equal(told, "");
	assert_times(analysis, 200, 300);
	/* leakrec was killed. */
	assert_times(read_files(&(struct file){100, NONE, {200, 300}}, 1, 0), 100, 300);
	/* Its beginning was cut off. */
	assert_times(read_files(&(struct file){NONE, 900, {200, 300}}, 1, 0), 200, 900);
}

static void files_of_a_session(void **state)
{
	const struct file with[] = {{100, 400, {200}}, {500, 900, {600}}};
	const struct file then_without[] = {{100, 400, {200}}, {NONE, NONE, {600}}};

	assert_times(read_files(with, 2, 0), 100, 900);
	assert_times(read_files(then_without, 2, 0), 100, 600);
}

static void an_earlier_state_ends_at_its_moment(void **state)
{
	const struct file file = {100, 900, {200, 300}};
	struct analysis analysis = read_files(&file, 1, 150);

	assert_true(analysis.was_enough);
	assert_int_equal(heap_tracker_stats(analysis.heaps)->allocations, 1);
	assert_times(analysis, 100, 250);
	/* After the last event, and after the end. */
	analysis = read_files(&file, 1, 500);
	assert_true(analysis.was_enough);
	assert_times(analysis, 100, 600);
	analysis = read_files(&file, 1, 5000);
	assert_false(analysis.was_enough);
	assert_times(analysis, 100, 900);
	/* Without bounds, nothing is known of the time after the last event. */
	assert_times(read_files(&(struct file){NONE, NONE, {200, 300, 900}}, 1, 150), 200, 300);
}

static void hostile_bounds_do_no_harm(void **state)
{
	/* Samples come in time order, whatever they say. */
	assert_times(read_files(&(struct file){900, 100, {200, 300}}, 1, 0), 100, 900);
	assert_times(read_files(&(struct file){250, 220, {200, 300}}, 1, 0), 200, 300);
	assert_times(read_files(&(struct file){0, 0, {200, 300}}, 1, 0), 200, 300);
	assert_times(read_files(&(struct file){1, FAR, {200, 300}}, 1, 0), 1, FAR);
	assert_times(read_files(&(struct file){FAR, FAR, {200, 300}}, 1, 0), 200, FAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_are_the_recording_s),
		cmocka_unit_test(without_events),
		cmocka_unit_test(without_bounds_events_count),
		cmocka_unit_test(files_of_a_session),
		cmocka_unit_test(an_earlier_state_ends_at_its_moment),
		cmocka_unit_test(hostile_bounds_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
