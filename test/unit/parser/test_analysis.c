/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an analysis makes of recordings that lack something. */
#include "common/scope.h"
#include "parser/analysis/analysis.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#define PROCESS 10
#define BLOCK	0x5000u

/* A recording of malloc and free, by one process. */
struct recording {
	struct perf_data_writer *writer;
	int malloc_call, free_entry;
};

static struct recording begin_recording(void)
{
	struct recording recording = {.writer = perf_data_writer_create(NULL)};

	recording.malloc_call = perf_data_add_probe(recording.writer, "malloc", PROBE_CALL);
	recording.free_entry = perf_data_add_probe(recording.writer, "free", PROBE_ENTRY);
	return recording;
}

static void add_sample(const struct recording *recording, int event, uint64_t time_ns,
		       const uint64_t *fields)
{
	perf_data_sample(recording->writer, &(struct perf_data_sample){
						    .event = event,
						    .pid = PROCESS,
						    .tid = PROCESS,
						    .time_ns = time_ns,
						    .fields = fields,
					    });
}

static void add_malloc(const struct recording *recording, uint64_t time_ns, uint64_t block)
{
	add_sample(recording, recording->malloc_call, time_ns,
		   (const uint64_t[]){0x7000, 0x400010, 100, block});
}

static void add_free(const struct recording *recording, uint64_t time_ns, uint64_t block)
{
	add_sample(recording, recording->free_entry, time_ns,
		   (const uint64_t[]){0x7100, block, 0x400020});
}

/* Writes the recording, and frees it. Returns its path, as @ret_path. */
static int end_recording(struct recording *recording, char ret_path[64])
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(recording->writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(recording->writer);
	snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static int read_all(struct analysis *analysis, const char *const *paths, size_t nr)
{
	assert_int_equal(analysis_init(analysis, NULL, NULL), 0);
	return analysis_read(analysis, paths, nr);
}

static uint64_t count(const struct analysis *analysis, enum heap_anomaly_kind kind)
{
	return heap_tracker_stats(analysis->heaps)->anomalies[kind];
}

/* A block is freed at 20 and again at 40. */
static struct recording two_frees(void)
{
	struct recording recording = begin_recording();

	add_malloc(&recording, 10, BLOCK);
	add_free(&recording, 20, BLOCK);
	return recording;
}

static void check_two_frees(struct recording *recording, bool is_double)
{
	char path[64];
	const char *paths[] = {path};
	struct analysis analysis;
	int fd;

	add_free(recording, 40, BLOCK);
	fd = end_recording(recording, path);
	assert_int_equal(read_all(&analysis, paths, 1), 0);
	assert_int_equal(count(&analysis, ANOMALY_DOUBLE_FREE), is_double);
	assert_int_equal(count(&analysis, ANOMALY_FREE_UNKNOWN), !is_double);
	analysis_deinit(&analysis);
	close(fd);
}

static void double_free_needs_all_events(void **state)
{
	struct recording complete = two_frees(), loses_between = two_frees(),
			 loses_before = begin_recording(), loses_sometime = two_frees();

	check_two_frees(&complete, true);
	perf_data_lost_on(loses_between.writer, loses_between.free_entry, 0, 30, 1);
	check_two_frees(&loses_between, false);
	add_malloc(&loses_before, 2, BLOCK + 64);
	perf_data_lost_on(loses_before.writer, loses_before.free_entry, 0, 5, 1);
	add_malloc(&loses_before, 10, BLOCK);
	add_free(&loses_before, 20, BLOCK);
	check_two_frees(&loses_before, true);
	perf_data_lost_samples(loses_sometime.writer, 1);
	check_two_frees(&loses_sometime, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(double_free_needs_all_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
