/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings in windows that someone made up to keep the parser busy. */
#include "common/clock.h"
#include "common/scope.h"
#include "parser/analysis/analysis.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)
/* A recording that is eight times as large takes eight times as long, or a little more. */
#define NR	   10000
#define LARGER	   8
#define MAX_LONGER 30
#define NR_TRIES   5

struct maker {
	struct perf_data_writer *writer;
	int call, window;
	uint64_t time_ns;
};

static struct maker make(void)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL), .time_ns = S};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	maker.window = perf_data_add_event(maker.writer, "leakrec", "window", "u32 open\nu64 pace");
	return maker;
}

static void add(struct maker *maker, int event, pid_t pid, const uint64_t *fields)
{
	perf_data_sample(maker->writer, &(struct perf_data_sample){.event = event,
								   .pid = pid,
								   .tid = pid,
								   .time_ns = maker->time_ns++,
								   .fields = fields});
}

static void window(struct maker *maker, uint64_t open)
{
	add(maker, maker->window, 1, (uint64_t[]){open, 0});
}

static void allocate(struct maker *maker, pid_t pid, uint64_t number)
{
	add(maker, maker->call, pid, (uint64_t[]){0x7000, 0x400010, 64, 0x1000 + 16 * number});
}

/*
 * Reads the recording, in which @nr_unobserved blocks are not observed after their window. Returns
 * the CPU time that it takes, in nanoseconds.
 */
static uint64_t read_recording(struct maker *maker, uint64_t nr_unobserved)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	struct analysis analysis;
	uint64_t began_ns, took_ns;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(maker->writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(maker->writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	began_ns = clock_process_ns();
	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	took_ns = clock_process_ns() - began_ns;
	assert_int_equal(heap_tracker_stats(analysis.heaps)->unobserved_blocks, nr_unobserved);
	analysis_deinit(&analysis);
	return took_ns;
}

/* Others may take the caches meanwhile. What takes the square of the time does so each time. */
static void assert_linear(uint64_t (*read)(uint64_t nr))
{
	for (int i = 0; i < NR_TRIES; i++) {
		uint64_t few_ns = read(NR), many_ns = read(LARGER * NR);

		print_message("%.2f s, and %.2f s\n", (double)few_ns / 1e9, (double)many_ns / 1e9);
		if (many_ns < MAX_LONGER * few_ns)
			return;
	}
	fail_msg("it takes too much longer");
}

/* Blocks of as many processes wait for their first look. */
static uint64_t read_exits(uint64_t nr)
{
	struct maker maker = make();

	window(&maker, 1);
	for (uint64_t i = 0; i < nr; i++)
		allocate(&maker, 2 + (pid_t)i, 1);
	window(&maker, 0);
	for (uint64_t i = nr; i-- > 0;)
		perf_data_exit(maker.writer, 2 + (pid_t)i, 2 + (pid_t)i, maker.time_ns++);
	return read_recording(&maker, nr);
}

static void many_processes_exit(void **state)
{
	assert_linear(read_exits);
}

/* In each window one block comes, and waits for its first look. The last one is held at the end. */
static uint64_t read_windows(uint64_t nr)
{
	struct maker maker = make();

	for (uint64_t i = 0; i < nr; i++) {
		window(&maker, 1);
		allocate(&maker, 2, i);
		window(&maker, 0);
	}
	return read_recording(&maker, nr - 1);
}

static void many_windows_close(void **state)
{
	assert_linear(read_windows);
}

/* None of many processes does anything in the windows. */
static uint64_t read_idle_processes(uint64_t nr)
{
	struct maker maker = make();

	window(&maker, 1);
	for (uint64_t i = 0; i < nr; i++)
		allocate(&maker, 2 + (pid_t)i, 1);
	window(&maker, 0);
	for (uint64_t i = 0; i < nr; i++) {
		window(&maker, 1);
		window(&maker, 0);
	}
	return read_recording(&maker, nr);
}

static void many_processes_are_idle(void **state)
{
	assert_linear(read_idle_processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_processes_exit),
		cmocka_unit_test(many_windows_close),
		cmocka_unit_test(many_processes_are_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
