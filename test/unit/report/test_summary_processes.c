/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the summary says of several processes, which hold memory, file descriptors, or both. With an
 * argument, it only writes such a recording to that file, for tests of leakfollow.
 */
#include "common/scope.h"
#include "report/text/summary_report.h"
#include "test/support/perf_data_writer.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)

static struct perf_data_writer *writer;
static int call, opened;
static uint64_t time_ns;

static int setup(void **state)
{
	writer = perf_data_writer_create(NULL);
	call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	opened = perf_data_add_event(writer, "syscalls", "sys_exit_openat", "s64 ret");
	time_ns = 1000 * MS;
	return 0;
}

static int teardown(void **state)
{
	perf_data_writer_destroy(writer);
	return 0;
}

static void add(pid_t pid, int event, const uint64_t *fields)
{
	const uint64_t chain[] = {0x5000 + (uint64_t)pid, 0x6000};

	perf_data_sample(writer, &(struct perf_data_sample){.event = event,
							    .pid = pid,
							    .tid = pid,
							    .time_ns = time_ns += 10 * MS,
							    .fields = fields,
							    .callchain = chain,
							    .nr_callchain = 2});
}

static void allocate(pid_t pid, uint64_t number)
{
	add(pid, call, (uint64_t[]){0x9000, 0x5000, 24, 0x10000 + 0x100 * number});
}

static void open_one(pid_t pid, uint64_t number)
{
	add(pid, opened, (uint64_t[]){number});
}

/* The caller frees it. */
static char *summary(void)
{
	const struct leaks_options all = {0};
	const struct summary_report_style style = {0};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	struct analysis analysis;
	struct leak_report report;
	char path[64], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(fd >= 0 && out);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	assert_int_equal(leak_report_init(&report, &analysis, &all), 0);
	assert_int_equal(summary_report_write(out, &report, &style), 0);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	fclose(out);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in\n%s", part, text);
}

/* Descriptors have no bytes, and the process with more of them comes first. */
static void descriptors_are_no_blocks(void **state)
{
	_cleanup_free_ char *text = NULL;

	open_one(7, 3);
	for (uint64_t i = 0; i < 3; i++)
		open_one(8, 3 + i);
	text = summary();
	assert_has(text, "\n  2 processes hold resources; those with the most first:\n"
			 "   (8): 3 fds\n   (7): 1 fd\n");
}

static void add_both_kinds(void)
{
	for (uint64_t i = 0; i < 30; i++) {
		allocate(7, i);
		open_one(8, 3 + i);
	}
	allocate(9, 0);
	open_one(9, 3);
}

static void each_kind_is_named(void **state)
{
	_cleanup_free_ char *text = NULL;

	add_both_kinds();
	text = summary();
	assert_has(text, "\n  3 processes hold blocks and resources; worst leakers first:\n"
			 "   (7): 30 blocks, 720 bytes, of 30 held, 720 bytes\n"
			 "   (8): 30 fds, of 30 held\n"
			 "   (9): 0 blocks, 0 bytes, of 1 held, 24 bytes; 0 fds, of 1 held\n");
}

static void memory_needs_no_kind(void **state)
{
	_cleanup_free_ char *text = NULL;

	allocate(7, 0);
	allocate(7, 1);
	allocate(8, 0);
	text = summary();
	assert_has(text, "\n  2 processes hold blocks; those with the most first:\n"
			 "   (7): 2 blocks, 48 bytes\n   (8): 1 block, 24 bytes\n");
}

static int write_to(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int err;

	setup(NULL);
	add_both_kinds();
	err = fd < 0 ? -1 : perf_data_write(writer, PERF_DATA_FILE, fd);
	teardown(NULL);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(descriptors_are_no_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(each_kind_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_needs_no_kind, setup, teardown),
	};

	return argc > 1 ? write_to(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
