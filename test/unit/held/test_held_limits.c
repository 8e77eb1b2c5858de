/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More is recorded than leakrec can note of held blocks: which later segments lack then. */
#include "common/scope.h"
#include "recorder/held/held_groups.h"
#include "recorder/segments/segments.h"

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

#define PID	   4242
#define MALLOC	   1
#define FREE	   2
#define DEPTH	   256
#define IN_A_ROUND ((uint64_t)1 << 20) /* so many events are put in order */

struct sample {
	struct plain_head head;
	uint64_t nr_chain, chain[DEPTH];
	struct raw_head raw;
	uint32_t fields[8]; /* 64 bits each, not aligned to eight bytes */
};

/* Segments in a directory of its own, and what they list. */
struct fixture {
	char dir[sizeof("/tmp/test_held_limits.XXXXXX")];
	struct segments *segments;
	struct held_blocks *held;
};

#define FIELD(name, offset) "\tfield:u64 " name ";\toffset:" #offset ";\tsize:8;\tsigned:0;\n"

static int set_up(void **state)
{
	static struct fixture fixture;
	const struct segment_limits limits = {.bytes = UINT64_C(1) << 40};
	int fd;

	fixture = (struct fixture){.dir = "/tmp/test_held_limits.XXXXXX"};
	assert_non_null(mkdtemp(fixture.dir));
	assert_int_equal(segments_create(fixture.dir, &limits, &fixture.segments, &fd), 0);
	close(fd);
	assert_int_equal(held_blocks_create(segments_max_blocks(fixture.segments), &fixture.held),
			 0);
	assert_int_equal(held_blocks_keep_stacks(fixture.held), 0);
	assert_int_equal(held_blocks_add_event(fixture.held, MALLOC, "leakrec:malloc_call",
					       FIELD("__probe_func", 8) FIELD("__probe_ret_ip", 16)
						       FIELD("bytes", 24) FIELD("ret", 32)),
			 0);
	assert_int_equal(held_blocks_add_event(fixture.held, FREE, "leakrec:free",
					       FIELD("__probe_ip", 8) FIELD("mem", 16)),
			 0);
	assert_int_equal(segments_start(fixture.segments, fixture.held), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	segments_destroy(fixture->segments);
	held_blocks_destroy(fixture->held);
	return rmdir(fixture->dir);
}

/* @site makes the stack. */
static void feed(const struct fixture *fixture, uint64_t time_ns, uint16_t type,
		 const uint64_t fields[4], uint64_t site)
{
	static struct sample sample;
	const unsigned int size = sizeof(sample) - offsetof(struct sample, raw.type);

	sample.head = (struct plain_head){
		.header = {PERF_RECORD_SAMPLE, 0, sizeof(sample)},
		.pid = PID,
		.tid = PID,
		.time_ns = time_ns,
	};
	sample.nr_chain = DEPTH;
	sample.chain[0] = (uint64_t)PERF_CONTEXT_USER;
	for (size_t i = 1; i < DEPTH; i++)
		sample.chain[i] = site;
	sample.raw = (struct raw_head){.size = size, .type = type};
	memcpy(sample.fields, fields, sizeof(sample.fields));
	held_blocks_feed_sample(fixture->held, &sample.head.header, &sample.raw);
}

static void allocate(const struct fixture *fixture, uint64_t time_ns, uint64_t address,
		     uint64_t site)
{
	feed(fixture, time_ns, MALLOC, (const uint64_t[4]){0x401000, 0x501234, 64, address}, site);
}

/* What is said where the recording ends; the caller frees it. */
static char *report(const struct fixture *fixture)
{
	int fd = memfd_create("messages", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	char *text = calloc(1, 4096);

	assert_non_null(text);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	segments_report(fixture->segments);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_true(pread(fd, text, 4095, 0) >= 0);
	close(saved);
	close(fd);
	return text;
}

static int count_blocks(void *context, const struct held_group *group)
{
	*(size_t *)context += group->nr;
	return 0;
}

static size_t nr_listed(const struct fixture *fixture)
{
	size_t nr = 0;

	assert_int_equal(held_groups_visit(fixture->held, 100, count_blocks, &nr), 0);
	return nr;
}

static void nothing_is_said_without_need(void **state)
{
	const struct fixture *fixture = *state;

	for (uint64_t i = 1; i <= 1000; i++)
		allocate(fixture, i, i << 12, 0x600000 + i);
	held_blocks_apply(fixture->held, 1000);
	assert_int_equal(nr_listed(fixture), 1000);
	_cleanup_free_ char *text = report(fixture);
	assert_string_equal(text, "");
}

static void blocks_without_a_stack_are_counted(void **state)
{
	const struct fixture *fixture = *state;
	const uint64_t nr = HELD_STACKS_MAX_WORDS / DEPTH + 100;
	char expected[64];
	uint64_t nr_missing;

	for (uint64_t i = 1; i <= nr; i++) {
		allocate(fixture, i, i << 12, 0x600000 + i);
		if (i % 100 == 0)
			held_blocks_apply(fixture->held, i);
	}
	held_blocks_apply(fixture->held, nr);
	assert_int_equal(held_blocks_nr(fixture->held, PID), nr);
	nr_missing = nr - nr_listed(fixture);
	assert_in_range(nr_missing, 100, nr / 2);
	snprintf(expected, sizeof(expected), ": %d blocks had no room for their stack",
		 (int)nr_missing);
	_cleanup_free_ char *text = report(fixture);
	assert_non_null(strstr(text, expected));
}

/* The rings of CPUs are read one after the other: the allocation comes last, and is the oldest. */
static void what_comes_too_late_is_counted(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t time_ns = 10;

	feed(fixture, time_ns++, FREE, (const uint64_t[4]){0x402000, 0x1000}, 0);
	for (uint64_t i = 0; i < IN_A_ROUND; i++)
		feed(fixture, time_ns++, FREE, (const uint64_t[4]){0x402000, 0x2000}, 0);
	allocate(fixture, 1, 0x1000, 0x600000);
	held_blocks_apply(fixture->held, time_ns);
	assert_int_equal(nr_listed(fixture), 1); /* it is free */
	_cleanup_free_ char *text = report(fixture);
	assert_non_null(strstr(text, ": 1048576 events came out of order"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_said_without_need, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_without_a_stack_are_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_comes_too_late_is_counted, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
