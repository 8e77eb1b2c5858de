// SPDX-License-Identifier: GPL-2.0-or-later
/* The order in which mappings, forks and execs take effect while stacks are unwound. */
#include "common/perf_disk.h"
#include "common/scope.h"
#include "recorder/output/live_unwinder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PID 4242

struct mapping_record {
	struct perf_disk_mmap2 mapping;
	char path[16];
	struct record_trailer trailer;
};

struct task_record {
	struct perf_disk_task task;
	struct record_trailer trailer;
};

static int set_up(void **state)
{
	return live_unwinder_create((struct live_unwinder **)state);
}

static int tear_down(void **state)
{
	live_unwinder_destroy(*state);
	return 0;
}

static void note_mapping(struct live_unwinder *unwinder, uint64_t time_ns, uint32_t prot)
{
	struct mapping_record record = {
		.mapping.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof(record)},
		.mapping.pid = PID,
		.mapping.tid = PID,
		.mapping.address = 0x10000,
		.mapping.len = 0x1000,
		.mapping.prot = prot,
		.path = "/nowhere",
		.trailer.time_ns = time_ns,
	};

	assert_int_equal(live_unwinder_note(unwinder, &record.mapping.header), 0);
}

static void note_task(struct live_unwinder *unwinder, uint64_t time_ns, uint32_t type, uint32_t pid,
		      uint32_t ppid)
{
	struct task_record record = {
		.task.header = {type, 0, sizeof(record)},
		.task.pid = pid,
		.task.tid = pid,
		.task.ppid = ppid,
		.trailer.time_ns = time_ns,
	};

	assert_int_equal(live_unwinder_note(unwinder, &record.task.header), 0);
}

static void records_wait_in_time_order(void **state)
{
	static const uint64_t in_order[] = {5, 10, 10, 20, 30};
	struct live_unwinder *unwinder = *state;

	assert_true(live_unwinder_next_ns(unwinder) == UINT64_MAX);
	note_mapping(unwinder, 20, PROT_EXEC);
	note_task(unwinder, 10, PERF_RECORD_FORK, PID + 1, PID);
	note_mapping(unwinder, 10, PROT_EXEC);
	note_task(unwinder, 30, PERF_RECORD_EXIT, PID, 1);
	assert_true(live_unwinder_next_ns(unwinder) == 10);
	assert_int_equal(live_unwinder_apply_next(unwinder), 0);
	/*
	 * A record that arrives later is older. That does no harm, and afterwards the order is
	 * right.
	 */
	note_mapping(unwinder, 5, PROT_EXEC);
	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
		if (i == 1)
			continue; /* this one went first */
		assert_true(live_unwinder_next_ns(unwinder) == in_order[i]);
		assert_int_equal(live_unwinder_apply_next(unwinder), 0);
	}
	assert_true(live_unwinder_next_ns(unwinder) == UINT64_MAX);
}

static void what_changes_no_address_space_is_ignored(void **state)
{
	struct live_unwinder *unwinder = *state;
	struct perf_event_header bare[] = {
		{PERF_RECORD_MMAP2, 0, sizeof(bare[0])},
		{PERF_RECORD_FORK, 0, sizeof(bare[0])},
		{PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, sizeof(bare[0])},
		{PERF_RECORD_SAMPLE, 0, sizeof(bare[0])},
	};

	note_mapping(unwinder, 1, PROT_READ);
	note_task(unwinder, 2, PERF_RECORD_FORK, PID, PID); /* a thread */
	for (size_t i = 0; i < ARRAY_SIZE(bare); i++)
		assert_int_equal(live_unwinder_note(unwinder, &bare[i]), 0);
	/* A record without a time takes effect at once. */
	note_mapping(unwinder, 0, PROT_EXEC);
	assert_true(live_unwinder_next_ns(unwinder) == UINT64_MAX);
}

/* Some still wait when the recording ends. */
static void many_may_wait(void **state)
{
	struct live_unwinder *unwinder = *state;

	for (uint64_t i = 0; i < 10000; i++) {
		note_mapping(unwinder, 20000 - i, PROT_EXEC);
		if (i % 3 == 0) {
			assert_true(live_unwinder_next_ns(unwinder) == 20000 - i);
			assert_int_equal(live_unwinder_apply_next(unwinder), 0);
		}
	}
	assert_true(live_unwinder_next_ns(unwinder) == 10002);
}

/* A sample that ends after its fixed fields cannot be written. That is counted. */
static void what_cannot_be_read_is_counted(void **state)
{
	struct live_unwinder *unwinder;
	uint64_t id = 77, sample[6] = {0};
	struct record_event event = {.ids = &id, .nr_ids = 1, .has_stack = true};
	const struct record_events events = {.probes = {.events = &event, .nr_events = 1}};
	struct perf_event_header *header = (void *)sample;
	const struct perf_event_header *written = header;

	assert_int_equal(live_unwinder_create(&unwinder), 0);
	assert_int_equal(live_unwinder_set_events(unwinder, &events), 0);
	*header = (struct perf_event_header){PERF_RECORD_SAMPLE, 0, sizeof(sample)};
	sample[1] = id;
	assert_int_equal(live_unwinder_nr_dropped(unwinder), 0);
	assert_int_equal(live_unwinder_write(unwinder, header, NULL, &written), 0);
	assert_null(written);
	assert_int_equal(live_unwinder_nr_dropped(unwinder), 1);
	live_unwinder_destroy(unwinder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_read_is_counted),
		cmocka_unit_test_setup_teardown(records_wait_in_time_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_changes_no_address_space_is_ignored, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(many_may_wait, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
