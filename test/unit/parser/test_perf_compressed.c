/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed recordings: however the stream is cut into COMPRESSED records, the reader returns what
 * was compressed, and reports a bad stream in one line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "test/support/perf_data_buffer.h"
#include "test/unit/parser/perf_input_harness.h"

#include <errno.h>
#include <sys/resource.h>
#include <zstd.h>

#define COMPRESSED  81
#define COMPRESSED2 83

static struct perf_data_writer *recording(void)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "realloc", PROBE_ENTRY);

	perf_data_comm(writer, 1, 1, 0, "target", false);
	for (uint64_t i = 1; i <= 300; i++) {
		perf_data_sample(writer,
				 &(struct perf_data_sample){
					 .event = event,
					 .pid = 1,
					 .tid = 1,
					 /* Three at a time, each later than the next three. */
					 .time_ns = 1000 + i / 3 - i % 7 * 2,
					 .fields = (uint64_t[]){0x7000, i, i, i},
					 .callchain = (uint64_t[]){0x400000 + i},
					 .nr_callchain = 1,
				 });
		if (i % 40 == 0)
			perf_data_finished_round(writer);
	}
	perf_data_exit(writer, 1, 1, 2000);
	return writer;
}

/* A compressor that writes its stream to records of a writer. */
struct packer {
	struct perf_data_writer *writer;
	ZSTD_CCtx *context;
	uint32_t type;
};

/* Compresses and flushes; the output goes into one record. */
static void pack(struct packer *packer, const void *bytes, size_t nr)
{
	size_t room = ZSTD_compressBound(nr) + 64;
	_cleanup_free_ uint8_t *body = calloc(1, room + 16);
	size_t start = packer->type == COMPRESSED2 ? 8 : 0;
	ZSTD_inBuffer in = {bytes, nr, 0};
	ZSTD_outBuffer out = {body + start, room, 0};

	assert_non_null(body);
	assert_int_equal(ZSTD_compressStream2(packer->context, &out, &in, ZSTD_e_flush), 0);
	if (packer->type == COMPRESSED2) {
		memcpy(body, &(uint64_t){out.pos}, 8);
		out.pos = (out.pos + 7) / 8 * 8;
	}
	perf_data_raw_record(packer->writer, packer->type, 0, body, start + out.pos);
}

/* The recording with compressed records, with @part_bytes of them in a record. */
static struct perf_data_writer *compressed_recording(uint32_t type, size_t part_bytes)
{
	struct packer packer = {recording(), ZSTD_createCCtx(), type};
	struct buffer records = packer.writer->records;

	packer.writer->records = (struct buffer){0};
	for (size_t at = 0, part; at < records.nr; at += part) {
		part = records.nr - at < part_bytes ? records.nr - at : part_bytes;
		pack(&packer, records.bytes + at, part);
	}
	free(records.bytes);
	ZSTD_freeCCtx(packer.context);
	return packer.writer;
}

static void compressed_is_the_same(void **state)
{
	static const uint32_t types[] = {COMPRESSED, COMPRESSED2};
	static const size_t parts[] = {5, 100, 1001, 60000};
	static const enum perf_data_form forms[] = {
		PERF_DATA_FILE,
		PERF_DATA_FILE_PROVISIONAL,
		PERF_DATA_PIPE,
	};
	struct perf_data_writer *plain = recording();

	for (size_t form = 0; form < ARRAY_SIZE(forms); form++) {
		_cleanup_reading_ struct reading expected = read_form(plain, forms[form]);

		assert_int_equal(expected.stats.probe_samples, 300);
		for (size_t i = 0; i < ARRAY_SIZE(parts) * ARRAY_SIZE(types); i++) {
			struct perf_data_writer *writer =
				compressed_recording(types[i % 2], parts[i / 2]);
			_cleanup_reading_ struct reading reading = read_form(writer, forms[form]);
			_cleanup_reading_ struct reading piped = read_piped(writer, forms[form]);

			assert_int_equal(reading.ret, 0);
			assert_string_equal(reading.log, expected.log);
			assert_string_equal(reading.messages, expected.messages);
			assert_memory_equal(&reading.stats, &expected.stats,
					    offsetof(struct perf_input_stats, truncated));
			assert_int_equal(reading.stats.truncated, expected.stats.truncated);
			assert_string_equal(piped.log, expected.log);
			perf_data_writer_destroy(writer);
		}
	}
	perf_data_writer_destroy(plain);
}

/* The records before the bad position were read: the samples of the first half. */
static void assert_bad(struct packer *packer, const char *message)
{
	_cleanup_reading_ struct reading reading = read_form(packer->writer, PERF_DATA_PIPE);
	const char *newline = strchr(reading.messages, '\n');

	assert_int_equal(reading.ret, -EINVAL);
	if (!strstr(reading.messages, message))
		fail_msg("\"%s\" is not in \"%s\"", message, reading.messages);
	assert_non_null(newline);
	assert_string_equal(newline, "\n");
	assert_int_equal(reading.stats.probe_samples, 300);
	assert_non_null(strstr(reading.log, "exit t=2000"));
	perf_data_writer_destroy(packer->writer);
	ZSTD_freeCCtx(packer->context);
}

/* Begins a recording with compressed records. */
static struct packer begin_packer(void)
{
	struct packer packer = {recording(), ZSTD_createCCtx(), COMPRESSED};
	struct buffer records = packer.writer->records;

	packer.writer->records = (struct buffer){0};
	pack(&packer, records.bytes, records.nr);
	free(records.bytes);
	return packer;
}

static void no_streams(void **state)
{
	struct packer none = begin_packer(), small = begin_packer(), large = begin_packer();

	perf_data_raw_record(none.writer, COMPRESSED, 0, "\xff\xff no zstd data", 15);
	assert_bad(&none, "compressed data: ");
	perf_data_raw_record(small.writer, COMPRESSED2, 0, "1234567", 7);
	assert_bad(&small, "compressed data: the record is too small");
	perf_data_raw_record(large.writer, COMPRESSED2, 0, &(uint64_t){UINT64_MAX}, 8);
	assert_bad(&large, "compressed data: it is larger than its record");
}

static void records_that_must_not_be_compressed(void **state)
{
	static const uint32_t types[] = {COMPRESSED, COMPRESSED2, 66, 71};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct packer packer = begin_packer();
		struct perf_event_header record[2] = {{.type = types[i], .size = sizeof(record)}};

		pack(&packer, record, sizeof(record));
		assert_bad(&packer, "in compressed data");
	}
}

static void a_record_that_cannot_be(void **state)
{
	struct packer packer = begin_packer();
	struct perf_event_header record = {.type = PERF_RECORD_COMM, .size = 3};

	pack(&packer, &record, sizeof(record));
	assert_bad(&packer, "of the decompressed data: a record of type 3 and size 3");
}

static void a_stream_that_ends_early(void **state)
{
	struct packer packer = begin_packer();
	struct perf_event_header record = {.type = PERF_RECORD_COMM, .size = 100};
	_cleanup_reading_ struct reading reading = {0};

	pack(&packer, &record, sizeof(record));
	reading = read_form(packer.writer, PERF_DATA_FILE);
	assert_int_equal(reading.ret, 0);
	assert_true(reading.stats.truncated);
	assert_non_null(strstr(reading.messages, "ends too early"));
	assert_int_equal(reading.stats.probe_samples, 300);
	perf_data_writer_destroy(packer.writer);
	ZSTD_freeCCtx(packer.context);
}

/* A few kilobytes that decompress to a gigabyte. */
static void little_that_is_much_inside(void **state)
{
	static uint8_t record[65528];
	const struct perf_event_header header = {.type = 200, .size = sizeof(record)};
	struct packer packer = begin_packer();
	struct rusage before, after;
	_cleanup_reading_ struct reading reading = {0};

	memcpy(record, &header, sizeof(header));
	for (int i = 0; i < 16384; i++)
		pack(&packer, record, sizeof(record));
	getrusage(RUSAGE_SELF, &before);
	reading = read_form(packer.writer, PERF_DATA_PIPE);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.unknown_records, 16384);
	assert_true(after.ru_maxrss - before.ru_maxrss < 32 << 10);
	perf_data_writer_destroy(packer.writer);
	ZSTD_freeCCtx(packer.context);
}

/* A generator of its own, so that a failure is the same everywhere. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void random_damage(void **state)
{
	struct perf_data_writer *writer = compressed_recording(COMPRESSED, 1001);
	uint64_t seed = 20240301;
	size_t nr;
	_cleanup_free_ uint8_t *image = perf_data_image(writer, PERF_DATA_PIPE, &nr);
	_cleanup_free_ uint8_t *bytes = malloc(nr);

	assert_non_null(bytes);
	for (int round = 0; round < 1000; round++) {
		memcpy(bytes, image, nr);
		for (uint32_t i = 1 + next_random(&seed) % 4; i > 0; i--)
			bytes[16 + next_random(&seed) % (nr - 16)] ^=
				(uint8_t)(1 << next_random(&seed) % 8);
		_cleanup_reading_ struct reading reading =
			read_bytes(bytes, round % 4 ? nr : next_random(&seed) % nr);

		assert_true(reading.ret <= 0);
		assert_true(reading.ret == 0 || reading.messages[0] != '\0');
	}
	perf_data_writer_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_is_the_same),
		cmocka_unit_test(no_streams),
		cmocka_unit_test(records_that_must_not_be_compressed),
		cmocka_unit_test(a_record_that_cannot_be),
		cmocka_unit_test(a_stream_that_ends_early),
		cmocka_unit_test(little_that_is_much_inside),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
