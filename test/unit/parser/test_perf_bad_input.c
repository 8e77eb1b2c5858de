/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads input that is truncated, damaged or no recording: one clear message each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "test/unit/parser/perf_input_harness.h"

#include <errno.h>

#define FLIP_ROUNDS 1500

static struct perf_data_writer *small_recording(void)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "realloc", PROBE_ENTRY);

	perf_data_add_newtask(writer);
	perf_data_build_id(writer, "/lib/libc.so.6", 0xab);
	perf_data_comm(writer, 1, 1, 0, "target", false);
	perf_data_mmap(writer, 1, 0, 0x400000, 0x2000, 0x1000, "/bin/target");
	for (uint64_t i = 1; i <= 4; i++) {
		perf_data_sample(writer, &(struct perf_data_sample){
						 .event = event,
						 .pid = 1,
						 .tid = 1,
						 .time_ns = i,
						 .fields = (uint64_t[]){0x7000, i, i, i},
						 .callchain = (uint64_t[]){0x400000 + i},
						 .nr_callchain = 1,
					 });
		perf_data_finished_round(writer);
	}
	perf_data_exit(writer, 1, 1, 9);
	return writer;
}

static void assert_one_line(const struct reading *reading, int ret, const char *message)
{
	const char *newline = strchr(reading->messages, '\n');

	assert_int_equal(reading->ret, ret);
	assert_non_null(strstr(reading->messages, message));
	assert_non_null(newline);
	assert_string_equal(newline, "\n");
}

static void files_that_are_no_recording(void **state)
{
	static const char prose[] = "target  4711 [000] was here\n";
	static const uint64_t swapped[] = {0x50455246494c4532, 0, 0};
	_cleanup_reading_ struct reading empty = read_bytes(NULL, 0);
	_cleanup_reading_ struct reading text = read_bytes((const uint8_t *)prose, strlen(prose));
	_cleanup_reading_ struct reading brief = read_bytes((const uint8_t *)"PERFILE2abc", 11);
	_cleanup_reading_ struct reading other =
		read_bytes((const uint8_t *)swapped, sizeof(swapped));
	_cleanup_close_ int directory = open("/", O_RDONLY | O_CLOEXEC);
	_cleanup_reading_ struct reading unreadable = read_fd(directory);

	assert_one_line(&empty, -EINVAL, "input: not a perf.data file: it is empty");
	assert_one_line(&text, -EINVAL, "input: neither a perf.data file");
	assert_one_line(&brief, -EINVAL, "input: not a perf.data file: it ends within its header");
	assert_one_line(&other, -EINVAL, "other byte order");
	assert_one_line(&unreadable, -EISDIR, "Is a directory");
}

static void recordings_without_allocator_events(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	_cleanup_reading_ struct reading none = {0}, named = {0};

	perf_data_add_dummy(writer);
	none = read_form(writer, PERF_DATA_FILE);
	assert_one_line(&none, -ENODATA, "no allocator events");
	for (int i = 0; i < 7; i++)
		perf_data_add_event(writer, "sched", (const char[]){(char)('a' + i), 0}, "u64 x");
	named = read_form(writer, PERF_DATA_FILE);
	assert_one_line(&named, -ENODATA,
			"(sched:a, sched:b, sched:c, sched:d, sched:e and 2 more)");
	perf_data_writer_destroy(writer);
}

/* libtraceevent replaces such names and leaks them, which AddressSanitizer reports. */
static void names_that_are_replaced(void **state)
{
	struct perf_data_writer *writer = small_recording();
	_cleanup_reading_ struct reading reading = {0};

	perf_data_add_event(writer, "probe_a", "VIF_PR_FMT", "u64 x");
	perf_data_add_event(writer, "probe_a", "malloc", "u64 __probe_ip\nu64 STA_PR_FMT");
	reading = read_form(writer, PERF_DATA_FILE);
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.probe_samples, 4);
	perf_data_writer_destroy(writer);
}

/* If a pipe's recording ends anywhere, its beginning is read, and the truncation is reported. */
static void recordings_cut_anywhere(void **state)
{
	struct perf_data_writer *writer = small_recording();
	size_t nr, nr_warned = 0;
	_cleanup_free_ uint8_t *bytes = perf_data_image(writer, PERF_DATA_PIPE, &nr);
	uint64_t nr_samples = 0;

	for (size_t cut = 16; cut < nr; cut++) {
		_cleanup_reading_ struct reading reading = read_bytes(bytes, cut);

		assert_true(reading.ret == 0 || reading.ret == -ENODATA);
		if (reading.ret == 0 && reading.stats.truncated) {
			assert_one_line(&reading, 0, "warning: input: ends too early, at offset");
			nr_warned++;
		}
		assert_true(reading.stats.probe_samples >= nr_samples);
		nr_samples = reading.stats.probe_samples;
	}
	assert_int_equal(nr_samples, 4);
	assert_true(nr_warned > 100);
	perf_data_writer_destroy(writer);
}

static void files_cut_anywhere(void **state)
{
	struct perf_data_writer *writer = small_recording();
	size_t nr;
	_cleanup_free_ uint8_t *bytes = perf_data_image(writer, PERF_DATA_FILE, &nr);

	for (size_t cut = 0; cut < nr; cut++) {
		_cleanup_reading_ struct reading reading = read_bytes(bytes, cut);

		/* The last section is the build-ids, which the records do not need. */
		assert_true(reading.ret < 0 || (nr - cut < 64 && reading.stats.samples == 4));
		assert_true(reading.ret == 0 || reading.messages[0] != '\0');
	}
	perf_data_writer_destroy(writer);
}

/* leakrec's file has a table of its sections before the data, too. */
static void a_cut_file_with_an_early_table(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t data[2]; /* offset, size */
	size_t nr;

	for (uint64_t i = 1; i <= 3; i++)
		perf_data_sample(writer, &(struct perf_data_sample){
						 .event = event,
						 .time_ns = i,
						 .fields = (uint64_t[]){0x7000, i, 0},
					 });
	bytes = perf_data_image(writer, PERF_DATA_FILE_PROVISIONAL, &nr);
	memcpy(data, bytes + 40, sizeof(data));
	data[0] += 16; /* one section */
	data[1] = nr + 100000;
	memcpy(bytes + 40, data, sizeof(data));
	_cleanup_reading_ struct reading reading = read_bytes(bytes, nr - 8);

	assert_one_line(&reading, 0, "warning: input: ends too early");
	assert_int_equal(reading.stats.probe_samples, 2);
	assert_true(reading.stats.truncated);
	perf_data_writer_destroy(writer);
}

/* Replaces @nr_patch bytes at @offset of the file. */
static struct reading read_patched(enum perf_data_form form, size_t offset, const void *patch,
				   size_t nr_patch)
{
	struct perf_data_writer *writer = small_recording();
	size_t nr;
	_cleanup_free_ uint8_t *bytes = perf_data_image(writer, form, &nr);

	assert_true(offset + nr_patch <= nr);
	memcpy(bytes + offset, patch, nr_patch);
	perf_data_writer_destroy(writer);
	return read_bytes(bytes, nr);
}

static void damaged_headers(void **state)
{
	const uint64_t huge = UINT64_MAX - 8, million = 1000000, odd = 81;
	_cleanup_reading_ struct reading header_size =
		read_patched(PERF_DATA_FILE, 8, &million, sizeof(million));
	_cleanup_reading_ struct reading attr_size =
		read_patched(PERF_DATA_FILE, 16, &million, sizeof(million));
	_cleanup_reading_ struct reading odd_attr_size =
		read_patched(PERF_DATA_FILE, 16, &odd, sizeof(odd));
	_cleanup_reading_ struct reading attrs_offset =
		read_patched(PERF_DATA_FILE, 24, &huge, sizeof(huge));
	_cleanup_reading_ struct reading attrs_size =
		read_patched(PERF_DATA_FILE, 32, &huge, sizeof(huge));
	_cleanup_reading_ struct reading data_offset =
		read_patched(PERF_DATA_FILE, 40, &huge, sizeof(huge));

	assert_one_line(&header_size, -EINVAL, "its header has an unknown size");
	assert_one_line(&attr_size, -EINVAL, "attributes of 1000000 bytes each");
	assert_true(odd_attr_size.ret < 0);
	assert_one_line(&attrs_offset, -EINVAL, "attributes");
	assert_one_line(&attrs_size, -EINVAL, "attributes");
	assert_one_line(&data_offset, -EINVAL, "data");
}

static void damaged_record_sizes(void **state)
{
	static const uint16_t sizes[] = {0, 7, 65528};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct perf_data_writer *writer = small_recording();
		struct perf_event_header header = {.type = PERF_RECORD_COMM, .size = sizes[i]};
		_cleanup_reading_ struct reading reading = {0};

		perf_data_raw_bytes(writer, &header, sizeof(header));
		reading = read_form(writer, PERF_DATA_FILE);
		assert_one_line(&reading, -EINVAL, "corrupted at offset");
		/* The records before it were delivered. */
		assert_int_equal(reading.stats.probe_samples, 4);
		assert_non_null(strstr(reading.log, "exit t=9"));
		perf_data_writer_destroy(writer);
	}
}

static void unterminated_strings(void **state)
{
	static const uint64_t words[12] = {[9] = 0x4141414141414141, [10] = 0x4141414141414141};
	struct perf_data_writer *writer = small_recording();
	_cleanup_reading_ struct reading reading = {0};

	/*
	 * The trailer after a body full of letters has enough NULs, but does not belong to the
	 * string.
	 */
	perf_data_raw_record(writer, PERF_RECORD_COMM, 0, words + 8, 8);
	perf_data_raw_record(writer, PERF_RECORD_MMAP, 0, words, 32);
	perf_data_raw_record(writer, PERF_RECORD_MMAP2, 0, words, 72);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.undecodable, 3);
	perf_data_writer_destroy(writer);
}

/* A generator of its own, so that a failure is the same everywhere. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Random damage: the reader always returns, and reports why it fails. */
static void random_damage(void **state)
{
	struct perf_data_writer *writer = small_recording();
	uint64_t seed = 20240229;

	for (int round = 0; round < FLIP_ROUNDS; round++) {
		enum perf_data_form form = (enum perf_data_form)(round % 4);
		size_t nr;
		_cleanup_free_ uint8_t *bytes = perf_data_image(writer, form, &nr);

		for (uint32_t i = 1 + next_random(&seed) % 8; i > 0; i--) {
			uint8_t *byte = &bytes[8 + next_random(&seed) % (nr - 8)];

			/* Flips a bit, or sets a value that is bad for sizes and counts. */
			if (next_random(&seed) % 2)
				*byte ^= (uint8_t)(1 << next_random(&seed) % 8);
			else
				*byte = (const uint8_t[]){0, 0xff, 0x7f, 8}[next_random(&seed) % 4];
		}
		if (next_random(&seed) % 4 == 0)
			nr = next_random(&seed) % nr;
		_cleanup_reading_ struct reading reading = read_bytes(bytes, nr);

		assert_true(reading.ret <= 0);
		assert_true(reading.ret == 0 || reading.messages[0] != '\0');
	}
	perf_data_writer_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_are_no_recording),
		cmocka_unit_test(recordings_without_allocator_events),
		cmocka_unit_test(names_that_are_replaced),
		cmocka_unit_test(recordings_cut_anywhere),
		cmocka_unit_test(files_cut_anywhere),
		cmocka_unit_test(a_cut_file_with_an_early_table),
		cmocka_unit_test(damaged_headers),
		cmocka_unit_test(damaged_record_sizes),
		cmocka_unit_test(unterminated_strings),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
