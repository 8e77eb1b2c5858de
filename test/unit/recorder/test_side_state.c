/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state with which a segment begins: how much memory it takes of whoever maps and forks much.
 */
#include "recorder/segments/side_state.h"

#include "common/perf_disk.h"
#include "recorder/events/sample_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <string.h>
#include <cmocka.h>

#define NR_MAPS	    10000
#define NR_CHILDREN 10000

static void note_map(struct side_state *state, uint64_t nr)
{
	struct {
		struct perf_disk_mmap2 map;
		char path[8];
		struct record_trailer trailer;
	} record = {
		.map.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof(record)},
		.map.pid = 1,
		.map.tid = 1,
		.map.address = nr << 12,
		.map.len = 1 << 12,
		.path = "/x",
		.trailer.time_ns = nr,
	};

	assert_int_equal(side_state_note(state, &record.map.header), 0);
}

static void note_fork(struct side_state *state, uint32_t pid)
{
	struct {
		struct perf_disk_task task;
		struct record_trailer trailer;
	} record = {
		.task.header = {PERF_RECORD_FORK, PERF_RECORD_MISC_USER, sizeof(record)},
		.task.pid = pid,
		.task.tid = pid,
		.task.ppid = 1,
		.task.ptid = 1,
		.trailer.time_ns = NR_MAPS + pid,
	};

	assert_int_equal(side_state_note(state, &record.task.header), 0);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void test_children_with_many_mappings(void **unused)
{
	struct side_state *state = side_state_create();
	size_t before, after;

	assert_non_null(state);
	for (uint64_t nr = 1; nr <= NR_MAPS; nr++)
		note_map(state, nr);
	assert_int_equal(side_state_apply(state, NR_MAPS), 0);
	assert_int_equal(side_state_left_out(state), 0);
	before = allocated();
	for (uint32_t pid = 2; pid < 2 + NR_CHILDREN; pid++) {
		note_fork(state, pid);
		assert_int_equal(side_state_apply(state, UINT64_MAX), 0);
	}
	after = allocated();
	/* The processes themselves take some more. */
	assert_true(after - before < SIDE_STATE_MAX_BYTES + NR_CHILDREN * 1024);
	assert_true(side_state_left_out(state) > 0);
	side_state_destroy(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_with_many_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
