/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding: probes' fields, by leakprobe's names and by perf probe's, and samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "test/unit/parser/perf_input_harness.h"
#include "common/perf_disk.h"
#include "parser/records/perf_side_records.h"

#include <errno.h>

/* Reads one sample of event system:name with @fields, whose @values are given. */
static struct reading read_one(const char *name, const char *fields, const uint64_t *values)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	struct reading reading;

	perf_data_sample(writer,
			 &(struct perf_data_sample){
				 .event = perf_data_add_event(writer, "probe_libc", name, fields),
				 .pid = 1,
				 .tid = 1,
				 .time_ns = 1,
				 .fields = values,
			 });
	reading = read_form(writer, PERF_DATA_FILE);
	perf_data_writer_destroy(writer);
	return reading;
}

#define assert_fields(name, fields, expected, ...)                                                 \
	do {                                                                                       \
		_cleanup_reading_ struct reading r =                                               \
			read_one(name, fields, (const uint64_t[]){__VA_ARGS__});                   \
		assert_string_equal(r.messages, "");                                               \
		assert_string_equal(r.log, name " t=1 #1 1/1 " expected "\n");                     \
	} while (0)

static void arguments_by_the_schemas_names(void **state)
{
	assert_fields("calloc", "u64 __probe_ip\nu64 elem_size\nu64 n",
		      "n=0x3 elem_size=0x10 at=0x9 from=0x0", 9, 16, 3);
	assert_fields("realloc", "u64 __probe_ip\nu64 caller\nu64 bytes\nu64 oldmem",
		      "oldmem=0x30 bytes=0x20 at=0x9 from=0x10", 9, 16, 32, 48);
	assert_fields("malloc_1", "u64 __probe_ip\nu64 bytes", "bytes=0x7 at=0x9 from=0x0", 9, 7);
}

static void arguments_by_perf_probes_numbers(void **state)
{
	assert_fields("realloc", "u64 __probe_ip\nu64 arg1\nu64 arg2",
		      "oldmem=0x20 bytes=0x30 at=0x9 from=0x0", 9, 32, 48);
	assert_fields("malloc__return", "u64 __probe_func\nu64 __probe_ret_ip\nu64 arg1",
		      "ret=0x30 at=0x9 to=0x20", 9, 32, 48);
	assert_fields("malloc_ret__return", "u64 __probe_func\nu64 __probe_ret_ip\nu64 arg1",
		      "ret=0x30 at=0x9 to=0x20", 9, 32, 48);
}

/* The size of the build-id that is found in a record with that flag, whose union has these bytes.
 */
static uint8_t build_id_size(const uint8_t bytes[static 24])
{
	struct {
		struct perf_disk_mmap2 disk;
		char path[8];
	} mmap2 = {
		.disk.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, sizeof(mmap2)},
		.path = "/a",
	};
	struct perf_mmap_record ret = {0};

	memcpy(&mmap2.disk.build_id_size, bytes, 24);
	assert_int_equal(perf_decode_mmap(&(struct perf_record){.header = mmap2.disk.header,
								.bytes = (void *)&mmap2},
					  sizeof(mmap2), &ret),
			 0);
	/* What is none is an inode. */
	assert_int_equal(ret.mapping.inode, ret.mapping.build_id_size ? 0 : mmap2.disk.inode);
	return ret.mapping.build_id_size;
}

/* The kernel leaves the flag from another tracer's record: these are devices and inodes. */
static void devices_are_no_build_ids(void **state)
{
	assert_int_equal(build_id_size((uint8_t[24]){20, [4] = 1, 2, [23] = 9}), 20);
	assert_int_equal(build_id_size((uint8_t[24]){8, [4] = 1, 2, [11] = 9}), 8);
	/* 254:0, as of perf record beside leakrec -a on a virtual disk; 259:1; 8:1 on ext4. */
	assert_int_equal(build_id_size((uint8_t[24]){254, [8] = 0x4b, 0xc9, 0x03}), 0);
	assert_int_equal(build_id_size((uint8_t[24]){3, 1, [4] = 1, [8] = 0x4b}), 0);
	assert_int_equal(build_id_size((uint8_t[24]){8, [4] = 1, [8] = 0x4b, [16] = 0x77}), 0);
}

static void arguments_by_their_place(void **state)
{
	assert_fields("free", "u64 __probe_ip\nu64 victim", "mem=0x20 at=0x9 from=0x0", 9, 32);
	assert_fields("calloc", "u64 __probe_ip\nu64 count\nu64 each",
		      "n=0x2 elem_size=0x3 at=0x9 from=0x0", 9, 2, 3);
	assert_fields("malloc_ret", "u64 __probe_func\nu64 __probe_ret_ip\nu64 got",
		      "ret=0x30 at=0x9 to=0x20", 9, 32, 48);
}

static void fields_of_every_width(void **state)
{
	assert_fields("malloc", "u64 __probe_ip\nu32 bytes", "bytes=0xfffffff0 at=0x9 from=0x0", 9,
		      0xfffffff0);
	assert_fields("malloc", "u64 __probe_ip\nu8 bytes", "bytes=0xf0 at=0x9 from=0x0", 9, 0xf0);
	assert_fields("malloc", "u64 __probe_ip\ns8 bytes",
		      "bytes=0xfffffffffffffff0 at=0x9 from=0x0", 9, 0xf0);
	assert_fields("malloc", "u64 __probe_ip\ns16 bytes",
		      "bytes=0xffffffffffff8000 at=0x9 from=0x0", 9, 0x8000);
	assert_fields("malloc_ret", "u64 __probe_func\ns64 arg1",
		      "ret=0xffffffffffffffff at=0x9 to=0x0", 9, UINT64_MAX);
}

static void posix_memalign_returns_an_int(void **state)
{
	/* The upper half of the register is undefined; ENOMEM is 12. */
	assert_fields("posix_memalign_ret", "u64 __probe_func\nu64 ret", "ret=0xc at=0x9 to=0x0", 9,
		      0xdead00000000000c);
	assert_fields("posix_memalign_ret", "u64 __probe_func\nu64 ret", "ret=0x0 at=0x9 to=0x0", 9,
		      0xdead000000000000);
	assert_fields("posix_memalign_ret", "u64 __probe_func\ns32 ret", "ret=0xc at=0x9 to=0x0", 9,
		      12);
	assert_fields("posix_memalign_store", "u64 __probe_ip\nu64 memptr\nu64 block",
		      "memptr=0x20 alignment=0x0 size=0x0 at=0x9 block=0x30", 9, 32, 48);
}

static void a_call_in_one_event(void **state)
{
	_cleanup_reading_ struct reading missing_ret =
		read_one("malloc_call", "u64 __probe_func\nu64 __probe_ret_ip\nu64 bytes",
			 (uint64_t[]){1, 2, 3});
	_cleanup_reading_ struct reading missing_size =
		read_one("malloc_call", "u64 __probe_func\nu64 __probe_ret_ip\nu64 size\nu64 ret",
			 (uint64_t[]){1, 2, 3, 4});
	_cleanup_reading_ struct reading missing_block =
		read_one("posix_memalign_call", "u64 __probe_func\nu64 memptr\nu64 size\nu64 ret",
			 (uint64_t[]){1, 2, 3, 4});
	_cleanup_reading_ struct reading no_probe = read_one(
		"malloc_call", "u64 __probe_ip\nu64 bytes\nu64 ret", (uint64_t[]){1, 2, 3});

	assert_fields("malloc_call", "u64 __probe_func\nu64 __probe_ret_ip\nu64 bytes\nu64 ret",
		      "ret=0x40 at=0x9 to=0x20 bytes=0x30 from=0x20", 9, 32, 48, 64);
	assert_fields("malloc_call_1", "u64 __probe_func\nu64 bytes\nu64 ret",
		      "ret=0x40 at=0x9 to=0x0 bytes=0x30 from=0x0", 9, 48, 64);
	assert_fields("calloc_call",
		      "u64 __probe_func\nu64 __probe_ret_ip\nu64 n\nu64 elem_size\nu64 ret",
		      "ret=0x40 at=0x9 to=0x20 n=0x3 elem_size=0x5 from=0x20", 9, 32, 3, 5, 64);
	assert_fields("posix_memalign_call",
		      "u64 __probe_func\nu64 memptr\nu64 size\nu64 block\nu64 ret",
		      "ret=0xc at=0x9 to=0x0 memptr=0x10 alignment=0x0 size=0x20 from=0x0 "
		      "block=0x30",
		      9, 16, 32, 48, 0xdead00000000000c);
	assert_int_equal(missing_ret.ret, -ENODATA);
	assert_non_null(strstr(missing_ret.messages, "malloc_call has no ret:"));
	assert_int_equal(missing_size.ret, -ENODATA);
	assert_non_null(strstr(missing_size.messages, "malloc_call has no bytes:"));
	assert_non_null(strstr(missing_block.messages, "posix_memalign_call has no block:"));
	assert_int_equal(no_probe.ret, -ENODATA);
	assert_non_null(strstr(no_probe.messages, "no allocator events"));
}

static void calls_stand_next_to_entries_and_returns(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int entry = perf_data_add_probe(writer, "malloc", PROBE_ENTRY);
	int ret = perf_data_add_probe(writer, "malloc", PROBE_RETURN);
	struct perf_data_sample sample = {
		.event = perf_data_add_probe(writer, "malloc", PROBE_CALL),
		.pid = 3,
		.tid = 4,
		.time_ns = 5,
		.fields = (uint64_t[]){0x7000, 0x20, 0x30, 0x40},
		.callchain = (uint64_t[]){0x20, 0x21},
		.nr_callchain = 2,
	};
	_cleanup_reading_ struct reading reading = {0};

	perf_data_sample(writer, &sample);
	sample.event = entry;
	sample.nr_callchain = 0;
	sample.fields = (uint64_t[]){0x7000, 0x8, 0x20};
	perf_data_sample(writer, &sample);
	sample.event = ret;
	sample.fields = (uint64_t[]){0x7000, 0x20, 0x50};
	perf_data_sample(writer, &sample);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_string_equal(reading.messages, "");
	assert_string_equal(
		reading.log,
		"malloc_call t=5 #1 3/4 ret=0x40 at=0x7000 to=0x20 bytes=0x30 from=0x20 "
		"chain=0x20,0x21\n"
		"malloc t=5 #2 3/4 bytes=0x8 at=0x7000 from=0x20\n"
		"malloc_ret t=5 #3 3/4 ret=0x50 at=0x7000 to=0x20\n");
	perf_data_writer_destroy(writer);
}

static void an_event_without_its_argument_is_told_and_not_used(void **state)
{
	_cleanup_reading_ struct reading entry =
		read_one("realloc", "u64 __probe_ip\nu64 bytes", (uint64_t[]){1, 2});
	_cleanup_reading_ struct reading ret =
		read_one("malloc_ret", "u64 __probe_func\nu64 __probe_ret_ip", (uint64_t[]){1, 2});

	assert_int_equal(entry.ret, -ENODATA);
	assert_non_null(strstr(entry.messages, "probe_libc:realloc has no oldmem"));
	assert_int_equal(ret.ret, -ENODATA);
	assert_non_null(strstr(ret.messages, "probe_libc:malloc_ret has no return value"));
}

static void an_event_is_a_probe_only_with_a_probes_fields(void **state)
{
	_cleanup_reading_ struct reading reading =
		read_one("malloc", "u64 bytes", (uint64_t[]){1, 2});

	assert_int_equal(reading.ret, -ENODATA);
	assert_non_null(strstr(reading.messages, "no allocator events (probe_libc:malloc)"));
}

static const struct perf_data_options everything = {
	.sample_type = PERF_DATA_DEFAULT_SAMPLE_TYPE | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
		       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
		       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
		       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
	.regs_mask = 1 << 6 | 1 << 7 | 1 << 8,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
};

static void samples_with_every_field(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(&everything);
	struct perf_data_sample sample = {
		.event = perf_data_add_probe(writer, "free", PROBE_ENTRY),
		.pid = 3,
		.tid = 4,
		.cpu = 1,
		.time_ns = 5,
		.fields = (uint64_t[]){0x7000, 0x20, 0x30},
		.callchain = (uint64_t[]){0x1, 0x2, 0x3},
		.nr_callchain = 3,
		.regs = (uint64_t[]){0x6, 0x7, 0x8},
		.stack = (const uint8_t *)"\1\2\3\4\5\6\7\10",
		.stack_bytes = 8,
	};
	_cleanup_reading_ struct reading reading = {0};

	perf_data_sample(writer, &sample);
	sample.regs = NULL; /* a kernel thread */
	sample.stack_bytes = 0;
	perf_data_sample(writer, &sample);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_string_equal(reading.log,
			    "free t=5 #1 3/4 mem=0x20 at=0x7000 from=0x30 chain=0x1,0x2,0x3 "
			    "dump=8 sum=36 regs=0x6,0x7,0x8\n"
			    "free t=5 #2 3/4 mem=0x20 at=0x7000 from=0x30 chain=0x1,0x2,0x3\n");
	perf_data_writer_destroy(writer);
}

/* Cuts a sample with every field at each word: all but the whole ones are counted and skipped. */
static void samples_that_end_early(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(&everything);
	struct perf_data_sample sample = {
		.event = perf_data_add_probe(writer, "free", PROBE_ENTRY),
		.time_ns = 5,
		.fields = (uint64_t[]){0x7000, 0x20, 0x30},
		.callchain = (uint64_t[]){0x1, 0x2, 0x3},
		.nr_callchain = 3,
		.regs = (uint64_t[]){0x6, 0x7, 0x8},
		.stack = (const uint8_t *)"\1\2\3\4\5\6\7\10",
		.stack_bytes = 8,
	};
	size_t empty_bytes, whole_bytes, nr_cut = 0;
	_cleanup_free_ uint8_t *whole = NULL;
	uint16_t size;

	free(perf_data_image(writer, PERF_DATA_PIPE, &empty_bytes));
	perf_data_sample(writer, &sample);
	whole = perf_data_image(writer, PERF_DATA_PIPE, &whole_bytes);
	size = (uint16_t)(whole_bytes - empty_bytes);
	for (uint16_t cut = 8; cut <= size; cut += 8, nr_cut++) {
		memcpy(whole + empty_bytes + 6, &cut, sizeof(cut));
		_cleanup_reading_ struct reading reading = read_bytes(whole, empty_bytes + cut);

		assert_int_equal(reading.ret, 0);
		/* Nothing after the stack (WEIGHT) is read. */
		assert_int_equal(reading.stats.undecodable, cut < size - 8);
		assert_int_equal(reading.stats.probe_samples, cut >= size - 8);
	}
	assert_true(nr_cut > 20);
	perf_data_writer_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_by_the_schemas_names),
		cmocka_unit_test(arguments_by_perf_probes_numbers),
		cmocka_unit_test(devices_are_no_build_ids),
		cmocka_unit_test(arguments_by_their_place),
		cmocka_unit_test(fields_of_every_width),
		cmocka_unit_test(posix_memalign_returns_an_int),
		cmocka_unit_test(a_call_in_one_event),
		cmocka_unit_test(calls_stand_next_to_entries_and_returns),
		cmocka_unit_test(an_event_without_its_argument_is_told_and_not_used),
		cmocka_unit_test(an_event_is_a_probe_only_with_a_probes_fields),
		cmocka_unit_test(samples_with_every_field),
		cmocka_unit_test(samples_that_end_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
