/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the writer puts around the records; and a mirror that it does not wait for. */
#include "common/clock.h"
#include "common/perf_disk.h"
#include "common/scope.h"
#include "recorder/output/build_ids.h"
#include "recorder/output/perf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NR_IDS	 20000 /* more than fit into two records of 64 KiB */
#define NR_FILES 50000 /* that a process maps */

/* Checks the ids of an attribute's record. The first must be @first. Returns how many there are. */
static size_t check_ids(const uint8_t *record, size_t size_bytes, uint64_t first)
{
	const size_t at = sizeof(struct perf_event_header) + sizeof(struct perf_event_attr);
	size_t nr = (size_bytes - at) / sizeof(uint64_t);

	for (size_t i = 0; i < nr; i++) {
		uint64_t id;

		memcpy(&id, record + at + i * sizeof(id), sizeof(id));
		assert_int_equal(id, first + i);
	}
	return nr;
}

static void all_ids_of_an_event_go_through_a_pipe(void **state)
{
	struct record_event event = {
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .size = sizeof(event.attr),
			 .config = PERF_COUNT_SW_DUMMY},
		.name = (char[]){"dummy:HG"},
		.ids = calloc(NR_IDS, sizeof(uint64_t)),
		.nr_ids = NR_IDS,
	};
	const struct record_events events = {.side = {.events = &event, .nr_events = 1}};
	int fd = memfd_create("recording", MFD_CLOEXEC);
	_cleanup_close_ int copy = dup(fd);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct perf_writer *writer;
	struct stat st;
	size_t nr = 0;

	for (size_t i = 0; i < NR_IDS; i++)
		event.ids[i] = 7 + i;
	assert_int_equal(perf_writer_create(fd, "recording", true, 0, -1, &writer), 0);
	assert_int_equal(perf_writer_begin(writer, &events, 0, NULL), 0);
	assert_int_equal(perf_writer_finish(writer, &(struct build_ids){0}), 0);
	perf_writer_destroy(writer);
	free(event.ids);

	assert_int_equal(fstat(copy, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(pread(copy, bytes, (size_t)st.st_size, 0), st.st_size);
	for (size_t at = PERF_PIPE_HEADER_SIZE; at < (size_t)st.st_size;) {
		struct perf_event_header header;

		memcpy(&header, bytes + at, sizeof(header));
		assert_in_range(header.size, sizeof(header), (size_t)st.st_size - at);
		if (header.type != PERF_USER_HEADER_ATTR)
			break;
		nr += check_ids(bytes + at, header.size, 7 + nr);
		at += header.size;
	}
	assert_int_equal(nr, NR_IDS);
}

/* The end of a mirror that is not needed does not end the recording. */
static void try_mirror_that_never_waits(bool is_needed)
{
	const size_t nr = 2000; /* twice what may wait in memory */
	_cleanup_free_ struct perf_event_header *sample = calloc(1, UINT16_MAX);
	const struct record_events events = {0};
	struct perf_writer *writer, *mirror;
	uint64_t left_out = 0;
	int pipe_fds[2];

	assert_non_null(sample);
	*sample = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = UINT16_MAX - 7};
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(perf_writer_create(memfd_create("recording", MFD_CLOEXEC), "recording",
					    true, 0, -1, &writer),
			 0);
	assert_int_equal(perf_writer_create(pipe_fds[1], "mirror", true, 0, -1, &mirror), 0);
	perf_writer_never_wait(mirror, &left_out);
	perf_writer_mirror(writer, mirror, is_needed);
	assert_int_equal(perf_writer_begin(writer, &events, 0, NULL), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(perf_writer_add_sample(writer, sample), 0);
	assert_in_range(left_out, 1, nr - 1);
	/* The recording has everything. */
	close(pipe_fds[0]);
	assert_int_equal(perf_writer_finish(writer, &(struct build_ids){0}), 0);
	assert_int_equal(perf_writer_interrupted(writer), is_needed);
	assert_true(perf_writer_size_bytes(writer) > nr * sample->size);
	perf_writer_destroy(writer);
}

static void nobody_waits_for_a_mirror_that_never_waits(void **state)
{
	try_mirror_that_never_waits(false);
	try_mirror_that_never_waits(true);
}

/* The kernel leaves the flag from another tracer's record. */
static void an_inode_is_no_build_id(void **state)
{
	struct {
		struct perf_disk_mmap2 disk;
		char path[8];
	} mmap2 = {
		.disk.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, sizeof(mmap2)},
		.disk.major = 254,
		.disk.inode = 0x3c94b,
		.path = "/a",
	};
	struct build_ids ids = {0};

	assert_int_equal(build_ids_add_record(&ids, &mmap2.disk.header), 0);
	assert_int_equal(ids.nr_entries, 0);
	build_ids_deinit(&ids);
}

/* Adds @nr_files files, and the first one again as another file. Returns the CPU time in ns. */
static uint64_t map_files(struct build_ids *ids, unsigned int nr_files)
{
	struct {
		struct perf_disk_mmap2 disk;
		char path[32];
	} mmap2 = {
		.disk.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, sizeof(mmap2)},
		.disk.build_id_size = 20,
	};
	uint64_t began_ns = clock_process_ns();

	for (unsigned int i = 0; i < nr_files; i++) {
		snprintf(mmap2.path, sizeof(mmap2.path), "/lib%u", i);
		assert_int_equal(build_ids_add_record(ids, &mmap2.disk.header), 0);
	}
	snprintf(mmap2.path, sizeof(mmap2.path), "/lib0");
	mmap2.disk.build_id[0] = 1;
	assert_int_equal(build_ids_add_record(ids, &mmap2.disk.header), 0);
	return clock_process_ns() - began_ns;
}

/* A process must not slow leakrec by files that it maps. */
static void many_files_are_found_at_once(void **state)
{
	enum { NR_TABLES = 50 };
	struct build_ids ids = {0};
	uint64_t few_ns = 0, many_ns;

	/* In small tables. A search through a whole table would take 50 times as long in the large
	 * one. */
	for (int i = 0; i < NR_TABLES; i++) {
		few_ns += map_files(&ids, NR_FILES / NR_TABLES);
		assert_int_equal(ids.nr_entries, NR_FILES / NR_TABLES + 1);
		build_ids_deinit(&ids);
		ids = (struct build_ids){0};
	}
	many_ns = map_files(&ids, NR_FILES);
	print_message("%.1f ms, and %.1f ms\n", (double)few_ns / 1e6, (double)many_ns / 1e6);
	assert_int_equal(ids.nr_entries, NR_FILES + 1);
	assert_true(many_ns < 20 * few_ns);
	build_ids_deinit(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ids_of_an_event_go_through_a_pipe),
		cmocka_unit_test(an_inode_is_no_build_id),
		cmocka_unit_test(many_files_are_found_at_once),
		cmocka_unit_test(nobody_waits_for_a_mirror_that_never_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
