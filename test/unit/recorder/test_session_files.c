/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several files of one session, read one after the other. */
#include "common/scope.h"
#include "parser/analysis/analysis.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#define BLOCK 0x5000u

/*
 * Makes a file in which block @nr is allocated, or freed, at that time. Its path goes to @ret_path.
 */
static int make_file(enum perf_data_form form, bool frees, uint64_t nr, uint64_t time_ns,
		     char ret_path[64])
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	const uint64_t call[] = {0x7000, 0x400010, 100 * nr, BLOCK + 64 * nr};
	const uint64_t release[] = {0x7100, BLOCK + 64 * nr, 0x400020};
	int malloc_call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	int free_entry = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	int fd = memfd_create("recording", MFD_CLOEXEC);

	/* perf record -a begins each file with synthesized records of existing tasks. */
	perf_data_fork(writer, 1, 1, 2, 2, 0);
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = frees ? free_entry : malloc_call,
					 .pid = 1,
					 .tid = 1,
					 .time_ns = time_ns,
					 .fields = frees ? release : call,
				 });
	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(writer, form, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void one_account_for_all(void **state)
{
	char paths[3][64];
	const char *list[] = {paths[0], paths[1], paths[2]};
	_cleanup_close_ __attribute__((unused)) int first =
		make_file(PERF_DATA_FILE, false, 1, 10, paths[0]);
	_cleanup_close_ __attribute__((unused)) int second =
		make_file(PERF_DATA_PIPE, false, 2, 20, paths[1]);
	_cleanup_close_ __attribute__((unused)) int third =
		make_file(PERF_DATA_FILE, true, 1, 30, paths[2]);
	const struct heap_block *held;
	struct analysis analysis;
	size_t nr;

	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	assert_int_equal(analysis_read(&analysis, list, 3), 0);
	assert_int_equal(analysis.input.probe_samples, 3);
	assert_int_equal(analysis.start_ns, 10);
	assert_int_equal(analysis.end_ns, 30);
	assert_int_equal(heap_tracker_stats(analysis.heaps)->frees, 1);
	assert_int_equal(heap_tracker_held(analysis.heaps, &held, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(held[0].size_bytes, 200);
	assert_int_equal(held[0].allocated.sequence, 2);
	analysis_deinit(&analysis);
}

static void a_missing_file(void **state)
{
	char path[64];
	const char *list[] = {path, "/nonexistent/perf.data"};
	_cleanup_close_ __attribute__((unused)) int first =
		make_file(PERF_DATA_FILE, false, 1, 10, path);
	struct analysis analysis;

	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	assert_true(analysis_read(&analysis, list, 2) < 0);
	/* The result of the files before is kept. */
	assert_int_equal(heap_tracker_stats(analysis.heaps)->allocations, 1);
	analysis_deinit(&analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_account_for_all),
		cmocka_unit_test(a_missing_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
