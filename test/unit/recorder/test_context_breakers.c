/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which tasks count as protected if no BPF programs report. */
#include "common/clock.h"
#include "recorder/events/context_breakers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

static struct context_breakers breakers;

static int setup(void **state)
{
	const struct clone_watch nothing = {.requests_fd = -1};

	breakers = (struct context_breakers){0};
	return context_breakers_watch(&breakers, &nothing);
}

static int teardown(void **state)
{
	context_breakers_deinit(&breakers);
	return 0;
}

/* This thread has created thread @tid of process @pid. The record names @ppid as the parent. */
static void create(uint32_t pid, uint32_t tid, uint32_t ppid)
{
	const struct perf_disk_task task = {
		.header = {PERF_RECORD_FORK, 0, sizeof(task)},
		.pid = pid,
		.tid = tid,
		.ppid = ppid,
		.ptid = (uint32_t)gettid(),
	};

	context_breakers_handle_task(&breakers, &task);
}

static void end(uint64_t time_ns)
{
	const struct perf_disk_task task = {
		.header = {PERF_RECORD_EXIT, 0, sizeof(task)},
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)gettid(),
		.time_ns = time_ns,
	};

	context_breakers_handle_task(&breakers, &task);
}

static void assert_unguarded(uint64_t nr)
{
	assert_int_equal(context_breakers_nr_unguarded(&breakers), nr);
}

static void nothing_is_counted_where_nothing_is_needed(void **state)
{
	create(1000, 1000, (uint32_t)gettid());
	assert_unguarded(0);
	assert_int_equal(context_breakers_fd(&breakers), -1);
}

static void a_guarded_thread_creates_what_it_likes(void **state)
{
	assert_int_equal(context_breakers_add(&breakers, gettid()), 0);
	create(1000, 1000, (uint32_t)gettid());
	create((uint32_t)gettid(), 1001, (uint32_t)gettid());
	assert_unguarded(0);
}

static void an_unguarded_one_is_counted_once(void **state)
{
	breakers.are_needed = true;
	create(1000, 1000, (uint32_t)gettid());
	assert_unguarded(1);
	create(1001, 1001, (uint32_t)gettid());
	assert_unguarded(1);
}

static void a_thread_that_is_not_the_first_may_fork_but_not_create_threads(void **state)
{
	breakers.are_needed = true;
	create(1000, 1000, 1);
	assert_unguarded(0);
	create(1, 1001, 1);
	assert_unguarded(1);
}

static void a_thread_that_ends_takes_its_breaker_along(void **state)
{
	const uint64_t before_ns = clock_now_ns();

	assert_int_equal(context_breakers_add(&breakers, gettid()), 0);
	end(before_ns); /* the end of the thread that had the number before */
	create(1000, 1000, (uint32_t)gettid());
	assert_unguarded(0);
	end(UINT64_MAX);
	create(1001, 1001, (uint32_t)gettid());
	assert_unguarded(1);
}

static void a_thread_that_is_gone_has_none(void **state)
{
	assert_int_equal(context_breakers_add(&breakers, 0x3fffffff), -ESRCH);
	assert_null(breakers.by_tid);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_counted_where_nothing_is_needed),
		TEST(a_guarded_thread_creates_what_it_likes),
		TEST(an_unguarded_one_is_counted_once),
		TEST(a_thread_that_is_not_the_first_may_fork_but_not_create_threads),
		TEST(a_thread_that_ends_takes_its_breaker_along),
		TEST(a_thread_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
