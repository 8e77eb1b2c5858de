/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which records of all processes' side events reach the file, and when all recorded ones have
 * ended. */
#include "common/perf_disk.h"
#include "recorder/events/sample_format.h"
#include "recorder/events/side_filter.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Ids that no process of this machine has: the filter must not ask the kernel about them. */
#define RECORDED 4000001
#define CHILD	 4000002
#define OTHER	 4000003

static void keep(struct side_filter *filter, uint32_t type, uint64_t time_ns, uint32_t pid,
		 uint32_t ppid)
{
	struct {
		struct perf_disk_task task;
		struct record_trailer trailer;
	} record = {
		.task = {{type, 0, sizeof(record)}, pid, ppid, pid, ppid, time_ns},
		.trailer = {.pid = ppid, .tid = ppid, .time_ns = time_ns},
	};

	assert_int_equal(side_filter_keep(filter, &record.task.header), 0);
}

static void keep_sample(struct side_filter *filter, uint64_t time_ns, uint32_t pid)
{
	struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
	} sample = {{PERF_RECORD_SAMPLE, 0, sizeof(sample)}, 1, 2, pid, pid, time_ns};

	assert_int_equal(side_filter_keep(filter, &sample.header), 0);
}

/* The times of all records that the filter gives, as text. */
static const char *times(struct side_filter *filter)
{
	static char text[256];
	const struct perf_event_header *record;
	size_t len = 0;

	*text = '\0';
	side_filter_sort(filter);
	while ((record = side_filter_next(filter)))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d", len ? " " : "",
					(int)side_filter_time_ns(record));
	return text;
}

static struct side_filter *create(pid_t pid)
{
	struct side_filter *filter = side_filter_create(&pid, 1);

	assert_non_null(filter);
	return filter;
}

static void only_recorded_processes(void **state)
{
	struct side_filter *filter = create(RECORDED);

	keep(filter, PERF_RECORD_MMAP2, 1, RECORDED, 0);
	keep(filter, PERF_RECORD_MMAP2, 2, OTHER, 0);
	keep(filter, PERF_RECORD_COMM, 3, OTHER, 0);
	keep(filter, PERF_RECORD_COMM, 4, RECORDED, 0);
	keep(filter, PERF_RECORD_EXIT, 5, OTHER, RECORDED);
	keep_sample(filter, 6, OTHER);
	keep_sample(filter, 7, RECORDED);
	keep(filter, PERF_RECORD_FORK, 8, CHILD, OTHER);
	/* A thread. */
	keep(filter, PERF_RECORD_FORK, 9, RECORDED, RECORDED);
	keep(filter, PERF_RECORD_THROTTLE, 10, RECORDED, RECORDED);
	keep(filter, PERF_RECORD_MMAP2, 11, UINT32_MAX, 0);
	assert_string_equal(times(filter), "1 4 7 9");
	assert_string_equal(times(filter), "");
	side_filter_destroy(filter);
}

/* The rings of two CPUs, one after the other: the child's records were read before its fork. */
static void children_in_the_order_of_time(void **state)
{
	struct side_filter *filter = create(RECORDED);

	keep(filter, PERF_RECORD_MMAP2, 20, CHILD, 0);
	keep(filter, PERF_RECORD_FORK, 30, OTHER, CHILD);
	keep(filter, PERF_RECORD_FORK, 10, CHILD, RECORDED);
	keep(filter, PERF_RECORD_MMAP2, 25, OTHER, 0);
	assert_string_equal(times(filter), "10 20 30");
	/* A later round. */
	keep(filter, PERF_RECORD_MMAP2, 40, OTHER, 0);
	assert_string_equal(times(filter), "40");
	side_filter_destroy(filter);
}

static void ids_that_are_used_again(void **state)
{
	struct side_filter *filter = create(RECORDED);

	keep(filter, PERF_RECORD_FORK, 10, CHILD, RECORDED);
	keep(filter, PERF_RECORD_EXIT, 20, CHILD, RECORDED);
	keep(filter, PERF_RECORD_FORK, 30, CHILD, OTHER);
	keep(filter, PERF_RECORD_MMAP2, 40, CHILD, 0);
	keep(filter, PERF_RECORD_FORK, 50, OTHER, CHILD);
	keep(filter, PERF_RECORD_EXIT, 60, CHILD, OTHER);
	keep(filter, PERF_RECORD_FORK, 70, CHILD, RECORDED);
	keep(filter, PERF_RECORD_MMAP2, 80, CHILD, 0);
	assert_string_equal(times(filter), "10 20 70 80");
	side_filter_destroy(filter);
}

/* It may have been a recorded process's record that was lost. Who found the ring full is not told.
 */
static void losses(void **state)
{
	struct side_filter *filter = create(RECORDED);
	const struct perf_event_header *record;
	struct record_trailer trailer;

	keep(filter, PERF_RECORD_LOST, 10, 1, OTHER);
	side_filter_sort(filter);
	record = side_filter_next(filter);
	assert_non_null(record);
	memcpy(&trailer, (const char *)record + record->size - sizeof(trailer), sizeof(trailer));
	assert_int_equal(trailer.pid, 0);
	assert_int_equal(trailer.tid, 0);
	assert_int_equal(trailer.time_ns, 10);
	assert_null(side_filter_next(filter));
	side_filter_destroy(filter);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

/* Also before it is reaped. */
static void end_child(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void the_end_of_all(void **state)
{
	pid_t first = start_child(), second = start_child();
	struct side_filter *filter = create(first);

	assert_false(side_filter_have_all_ended(filter));
	assert_true(side_filter_fd(filter) >= 0);
	end_child(first);
	/* Its last children may be in the rings. */
	assert_false(side_filter_have_all_ended(filter));
	keep(filter, PERF_RECORD_FORK, 10, (uint32_t)second, (uint32_t)first);
	assert_string_equal(times(filter), "10");
	assert_false(side_filter_have_all_ended(filter));
	assert_false(side_filter_have_all_ended(filter));
	end_child(second);
	assert_false(side_filter_have_all_ended(filter));
	assert_true(side_filter_have_all_ended(filter));
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
	side_filter_destroy(filter);
}

/* The watched process's id has become that of a process that is not recorded. */
static void the_end_of_a_used_id(void **state)
{
	pid_t pid = start_child();
	struct side_filter *filter = create(pid);

	assert_false(side_filter_have_all_ended(filter));
	keep(filter, PERF_RECORD_FORK, 10, (uint32_t)pid, OTHER);
	assert_string_equal(times(filter), "");
	assert_false(side_filter_have_all_ended(filter));
	assert_true(side_filter_have_all_ended(filter));
	end_child(pid);
	waitpid(pid, NULL, 0);
	side_filter_destroy(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_recorded_processes),
		cmocka_unit_test(children_in_the_order_of_time),
		cmocka_unit_test(ids_that_are_used_again),
		cmocka_unit_test(losses),
		cmocka_unit_test(the_end_of_all),
		cmocka_unit_test(the_end_of_a_used_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
