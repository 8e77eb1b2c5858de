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
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define NR_MAPS	     10000
#define NR_CHILDREN  10000
#define MAX_BYTES    ((size_t)1 << 20)
#define PAGE	     4096ULL
#define RECORD_BYTES 112 /* of struct map_record */

struct map_record {
	struct perf_disk_mmap2 map;
	char path[8];
	struct record_trailer trailer;
};

_Static_assert(sizeof(struct map_record) == RECORD_BYTES, "no padding");

static uint64_t time_ns;

/* Maps pages of a file from its @offset on; all in pages. */
static void note_map(struct side_state *state, uint64_t start, uint64_t nr, uint64_t offset)
{
	struct map_record record = {
		.map.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof(record)},
		.map.pid = 1,
		.map.tid = 1,
		.map.address = start * PAGE,
		.map.len = nr * PAGE,
		.map.file_offset = offset * PAGE,
		.path = "/x",
		.trailer.time_ns = ++time_ns,
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
		.trailer.time_ns = ++time_ns,
	};

	assert_int_equal(side_state_note(state, &record.task.header), 0);
}

static void apply(struct side_state *state)
{
	assert_int_equal(side_state_apply(state, UINT64_MAX), 0);
}

/* Writes the state. Returns the mappings, which the caller frees. */
static struct map_record *written(const struct side_state *state, size_t *ret_nr)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), copy = dup(fd);
	const struct record_events events = {0};
	struct perf_disk_header header;
	struct map_record *maps;
	struct perf_writer *writer;

	assert_int_equal(perf_writer_create(fd, "recording", false, 0, -1, &writer), 0);
	assert_int_equal(perf_writer_begin(writer, &events, 0, NULL), 0);
	assert_int_equal(side_state_write(state, writer), 0);
	assert_int_equal(perf_writer_finish(writer, &(struct build_ids){0}), 0);
	perf_writer_destroy(writer);
	assert_int_equal(pread(copy, &header, sizeof(header), 0), sizeof(header));
	maps = malloc(header.data.size);
	assert_non_null(maps);
	assert_int_equal(pread(copy, maps, header.data.size, (off_t)header.data.offset),
			 header.data.size);
	*ret_nr = header.data.size / sizeof(*maps);
	assert_int_equal(header.data.size % sizeof(*maps), 0);
	close(copy);
	return maps;
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void test_children_with_many_mappings(void **unused)
{
	struct side_state *state = side_state_create(2 * MAX_BYTES);
	size_t before, after, nr;

	assert_non_null(state);
	for (uint64_t start = 1; start <= NR_MAPS; start++)
		note_map(state, start, 1, 0);
	apply(state);
	assert_int_equal(side_state_left_out(state), 0);
	before = allocated();
	for (uint32_t pid = 2; pid < 2 + NR_CHILDREN; pid++) {
		note_fork(state, pid);
		apply(state);
	}
	after = allocated();
	/* The processes themselves take some. */
	assert_true(after - before < NR_CHILDREN * 1024);
	assert_true(side_state_left_out(state) > 0);
	free(written(state, &nr));
	assert_true(nr > NR_MAPS);
	assert_in_range(nr * RECORD_BYTES, 2 * MAX_BYTES - RECORD_BYTES, 2 * MAX_BYTES);
	side_state_destroy(state);
}

static void test_room_comes_back(void **unused)
{
	struct side_state *state = side_state_create(3 * RECORD_BYTES);
	size_t nr;

	assert_non_null(state);
	for (uint64_t start = 1; start <= 4; start++)
		note_map(state, start, 1, 0);
	apply(state);
	assert_int_equal(side_state_left_out(state), 1);
	note_map(state, 1, 2, 0);
	note_map(state, 4, 1, 0);
	note_map(state, 5, 1, 0);
	apply(state);
	assert_int_equal(side_state_left_out(state), 2);
	free(written(state, &nr));
	assert_int_equal(nr, 3);
	side_state_destroy(state);
}

/* A later mapping takes the place of what it covers, be that a part. A child has its parent's. */
static void test_overlaps(void **unused)
{
	static const struct {
		uint64_t start, nr, offset;
	} expected[] = {
		/* the child's */
		{10, 10, 0},
		{30, 10, 100},
		{50, 1, 200},
		{51, 1, 201},
		/* the parent's */
		{5, 10, 300},
		{15, 5, 5},
		{30, 2, 100},
		{32, 4, 400},
		{36, 4, 106},
		{45, 15, 500},
	};
	struct side_state *state = side_state_create(MAX_BYTES);
	struct map_record *maps;
	size_t nr, nr_of_child = 4, at = 0;

	assert_non_null(state);
	note_map(state, 50, 1, 200);
	note_map(state, 30, 10, 100);
	note_map(state, 51, 1, 201);
	note_map(state, 10, 10, 0);
	note_fork(state, 2);
	note_map(state, 5, 10, 300);
	note_map(state, 32, 4, 400);
	note_map(state, 45, 15, 500);
	apply(state);
	maps = written(state, &nr);
	assert_int_equal(nr, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < nr; i++) {
		bool is_child = maps[i].map.pid == 2;
		size_t nth = is_child ? at : nr_of_child + i - at;

		at += is_child;
		assert_int_equal(maps[i].map.address, expected[nth].start * PAGE);
		assert_int_equal(maps[i].map.len, expected[nth].nr * PAGE);
		assert_int_equal(maps[i].map.file_offset, expected[nth].offset * PAGE);
		assert_string_equal(maps[i].path, "/x");
	}
	free(maps);
	side_state_destroy(state);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The time for mapping often, with so many other mappings. */
static uint64_t time_with(uint64_t nr_others)
{
	struct side_state *state = side_state_create(64 * MAX_BYTES);
	uint64_t start_ns;

	assert_non_null(state);
	for (uint64_t start = 0; start < nr_others; start++)
		note_map(state, 2 * start, 1, 0);
	apply(state);
	for (uint64_t nr = 0; nr < 100000; nr++)
		note_map(state, nr % nr_others * 2, 1, nr);
	start_ns = cpu_ns();
	apply(state);
	start_ns = cpu_ns() - start_ns;
	side_state_destroy(state);
	return start_ns;
}

/* Looking at each of them would take a hundred times as long. */
static void test_many_mappings_cost_little(void **unused)
{
	uint64_t with_few = time_with(SIDE_STATE_MAX_MAPS / 128);
	uint64_t with_many = time_with(SIDE_STATE_MAX_MAPS);

	if (with_many >= 20 * with_few)
		fail_msg("%" PRIu64 " ns, but %" PRIu64 " ns with few", with_many, with_few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_with_many_mappings),
		cmocka_unit_test(test_room_comes_back),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_many_mappings_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
