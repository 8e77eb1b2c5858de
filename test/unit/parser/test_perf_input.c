/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the reader delivers from whole recordings of each form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "test/unit/parser/perf_input_harness.h"

#include <errno.h>

#define assert_log(reading, expected) assert_string_equal((reading).log, expected)

/* A process that allocates, forks and execs; one record of each kind. */
static struct perf_data_writer *whole_recording(void)
{
	static const uint64_t chain[] = {0x401000, 0x402000};
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int malloc_event = perf_data_add_probe(writer, "malloc", PROBE_ENTRY);
	int malloc_ret = perf_data_add_probe(writer, "malloc", PROBE_RETURN);
	int newtask = perf_data_add_newtask(writer);

	perf_data_build_id(writer, "/lib/libc.so.6", 0xab);
	perf_data_comm(writer, 10, 10, 0, "target", false);
	perf_data_mmap(writer, 10, 0, 0x400000, 0x2000, 0x1000, "/bin/target");
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = malloc_event,
					 .pid = 10,
					 .tid = 11,
					 .time_ns = 100,
					 .fields = (uint64_t[]){0x7000, 3072, 0x401000},
					 .callchain = chain,
					 .nr_callchain = 2,
				 });
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = malloc_ret,
					 .pid = 10,
					 .tid = 11,
					 .time_ns = 200,
					 .fields = (uint64_t[]){0x7000, 0x401000, 0x5550},
				 });
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = newtask,
					 .pid = 10,
					 .tid = 11,
					 .time_ns = 250,
					 .fields = (uint64_t[]){12, 0x4100},
				 });
	perf_data_fork(writer, 12, 12, 10, 11, 260);
	perf_data_comm(writer, 12, 12, 300, "other", true);
	perf_data_mmap_build_id(writer, 12, 310, 0x10000, 0x1000, "/bin/other", 0xcd);
	perf_data_lost(writer, 320, 5);
	perf_data_exit(writer, 12, 12, 400);
	perf_data_finished_round(writer);
	return writer;
}

static const char whole_log[] =
	"build-id /lib/libc.so.6 20*ab\n"
	"comm t=0 #0 10/10 target\n"
	"mmap t=0 #0 10/10 pid=10 0x400000+0x2000@0x1000 /bin/target x\n"
	"malloc t=100 #1 10/11 bytes=0xc00 at=0x7000 from=0x401000 chain=0x401000,0x402000\n"
	"malloc_ret t=200 #2 10/11 ret=0x5550 at=0x7000 to=0x401000\n"
	"task_newtask t=250 #2 10/11 new=12 flags=0x4100\n"
	"fork t=260 #2 12/12 12/12 by 10/11\n"
	"comm t=300 #2 12/12 other exec\n"
	"mmap t=310 #2 12/12 pid=12 0x10000+0x1000@0x0 /bin/other x id=20*cd\n"
	"lost t=320 #2 0/0 5\n"
	"exit t=400 #2 12/12 12/12 by 12/12\n";

static void assert_whole(const struct reading *reading)
{
	assert_log(*reading, whole_log);
	assert_string_equal(reading->messages, "");
	assert_int_equal(reading->ret, 0);
	assert_int_equal(reading->stats.samples, 3);
	assert_int_equal(reading->stats.probe_samples, 2);
	assert_int_equal(reading->stats.undecodable, 0);
	assert_int_equal(reading->stats.unknown_records, 0);
	assert_false(reading->stats.truncated);
}

static void every_form_gives_the_same_records(void **state)
{
	struct perf_data_writer *writer = whole_recording();
	_cleanup_reading_ struct reading file = read_form(writer, PERF_DATA_FILE);
	_cleanup_reading_ struct reading pipe_in_file = read_form(writer, PERF_DATA_PIPE);
	_cleanup_reading_ struct reading piped = read_piped(writer, PERF_DATA_PIPE);
	_cleanup_reading_ struct reading spooled = read_piped(writer, PERF_DATA_FILE);

	assert_whole(&file);
	assert_whole(&pipe_in_file);
	assert_whole(&piped);
	assert_whole(&spooled);
	perf_data_writer_destroy(writer);
}

static void a_killed_recorders_file_is_read_to_its_end(void **state)
{
	struct perf_data_writer *writer = whole_recording();
	_cleanup_reading_ struct reading provisional =
		read_form(writer, PERF_DATA_FILE_PROVISIONAL);
	_cleanup_reading_ struct reading without = read_form(writer, PERF_DATA_FILE_UNFINISHED);

	assert_log(provisional, whole_log);
	assert_int_equal(provisional.ret, 0);
	assert_true(provisional.stats.truncated);
	assert_non_null(strstr(provisional.messages, "did not finish"));

	/* perf's own unfinished files have no formats, which it writes last. */
	assert_int_equal(without.ret, -ENODATA);
	assert_non_null(strstr(without.messages, "formats of its events are missing"));
	perf_data_writer_destroy(writer);
}

static void formats_may_come_among_the_records(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);

	perf_data_add_dummy(writer);
	perf_data_tracing_data_record(writer);
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = event,
					 .pid = 1,
					 .tid = 2,
					 .time_ns = 3,
					 .fields = (uint64_t[]){0x7000, 0x1234, 0},
				 });
	for (enum perf_data_form form = PERF_DATA_FILE; form <= PERF_DATA_PIPE; form++) {
		_cleanup_reading_ struct reading reading = read_form(writer, form);

		assert_log(reading, "free t=3 #1 1/2 mem=0x1234 at=0x7000 from=0x0\n");
		assert_int_equal(reading.ret, 0);
	}
	perf_data_writer_destroy(writer);
}

static void add_free(struct perf_data_writer *writer, int event, uint64_t time_ns, uint64_t mem)
{
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = event,
					 .pid = 1,
					 .tid = 1,
					 .time_ns = time_ns,
					 .fields = (uint64_t[]){0x7000, mem, 0},
				 });
}

static void rounds_put_rings_in_order(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	_cleanup_reading_ struct reading reading = {0};

	/*
	 * Two rings. Ties are sorted by position. A record that comes after its round is reported.
	 */
	add_free(writer, event, 10, 1);
	add_free(writer, event, 30, 3);
	add_free(writer, event, 20, 2);
	perf_data_finished_round(writer);
	add_free(writer, event, 50, 6);
	add_free(writer, event, 30, 4);
	add_free(writer, event, 40, 5);
	perf_data_finished_round(writer);
	perf_data_comm(writer, 1, 1, 0, "at-once", false);
	add_free(writer, event, 15, 7);
	perf_data_finished_round(writer);

	reading = read_form(writer, PERF_DATA_FILE);
	assert_log(reading, "free t=10 #1 1/1 mem=0x1 at=0x7000 from=0x0\n"
			    "free t=20 #2 1/1 mem=0x2 at=0x7000 from=0x0\n"
			    "free t=30 #3 1/1 mem=0x3 at=0x7000 from=0x0\n"
			    "free t=30 #4 1/1 mem=0x4 at=0x7000 from=0x0\n"
			    "comm t=0 #4 1/1 at-once\n"
			    "free t=15 #5 1/1 mem=0x7 at=0x7000 from=0x0\n"
			    "free t=40 #6 1/1 mem=0x5 at=0x7000 from=0x0\n"
			    "free t=50 #7 1/1 mem=0x6 at=0x7000 from=0x0\n");
	assert_int_equal(reading.stats.out_of_order, 1);
	assert_int_equal(reading.stats.records, 11);
	perf_data_writer_destroy(writer);
}

/* As perf record writes a ring if events come between its two reads. */
static void records_written_twice_are_used_once(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	_cleanup_reading_ struct reading reading = {0};

	add_free(writer, event, 10, 1);
	add_free(writer, event, 20, 2);
	add_free(writer, event, 30, 3);
	perf_data_finished_round(writer);
	add_free(writer, event, 20, 2);
	add_free(writer, event, 30, 3);
	add_free(writer, event, 30, 4); /* another one, at the same time */
	perf_data_comm(writer, 1, 1, 40, "once", false);
	perf_data_finished_round(writer);
	perf_data_comm(writer, 1, 1, 40, "once", false);

	reading = read_form(writer, PERF_DATA_FILE);
	assert_log(reading, "free t=10 #1 1/1 mem=0x1 at=0x7000 from=0x0\n"
			    "free t=20 #2 1/1 mem=0x2 at=0x7000 from=0x0\n"
			    "free t=30 #3 1/1 mem=0x3 at=0x7000 from=0x0\n"
			    "free t=30 #4 1/1 mem=0x4 at=0x7000 from=0x0\n"
			    "comm t=40 #4 1/1 once\n");
	assert_int_equal(reading.stats.repeated, 3);
	assert_int_equal(reading.stats.out_of_order, 0);
	perf_data_writer_destroy(writer);
}

/*
 * Wrong frame pointers may lead to any number in a chain; samples must not be counted twice for it.
 */
static void wild_chains_written_twice_are_used_once(void **state)
{
	static const uint64_t chain[] = {0x401000, 0xffff800000001234, 0x402000};
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	const struct perf_data_sample sample = {
		.event = perf_data_add_probe(writer, "free", PROBE_ENTRY),
		.pid = 1,
		.tid = 1,
		.time_ns = 10,
		.fields = (uint64_t[]){0x7000, 1, 0},
		.callchain = chain,
		.nr_callchain = 3,
	};
	_cleanup_reading_ struct reading reading = {0};

	perf_data_sample(writer, &sample);
	perf_data_sample(writer, &sample);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_log(reading, "free t=10 #1 1/1 mem=0x1 at=0x7000 from=0x0 "
			    "chain=0x401000,0xffff800000001234,0x402000\n");
	assert_int_equal(reading.stats.repeated, 1);
	perf_data_writer_destroy(writer);
}

/* Such records are queued by their time like others, and rejected when they are due. */
static void samples_of_unknown_events_in_between(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	const uint64_t nr = 40;
	_cleanup_reading_ struct reading reading = {0};

	perf_data_add_probe(writer, "malloc", PROBE_ENTRY);
	for (uint64_t i = 1; i <= nr; i++) {
		const uint64_t stray[] = {0xdeadbeef, 0x7000, 1, i, 0, 0};

		add_free(writer, event, i, i);
		perf_data_raw_record(writer, PERF_RECORD_SAMPLE, 0, stray, sizeof(stray));
	}
	perf_data_finished_round(writer);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.probe_samples, nr);
	assert_int_equal(reading.stats.undecodable, nr);
	assert_int_equal(reading.stats.samples, 2 * nr);
	assert_int_equal(reading.stats.out_of_order, 0);
	perf_data_writer_destroy(writer);
}

static void many_records_cross_chunks(void **state)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	const uint64_t nr = 60000; /* some 7 MiB */
	const char *line;

	/* Each pair is swapped, so that records are held while chunks are released. */
	for (uint64_t i = 0; i < nr; i += 2) {
		add_free(writer, event, i + 2, i + 2);
		add_free(writer, event, i + 1, i + 1);
		if (i % 1000 == 0)
			perf_data_finished_round(writer);
		/* A record of an odd size misaligns all that follow. */
		if (i == 500)
			perf_data_raw_record(writer, 80, 0, "12345", 5);
	}
	_cleanup_reading_ struct reading file = read_form(writer, PERF_DATA_FILE);
	_cleanup_reading_ struct reading piped = read_piped(writer, PERF_DATA_PIPE);

	line = file.log;
	for (uint64_t i = 1; i <= nr; i++) {
		unsigned long long time_ns, number, mem;
		char text[80] = {0};

		/* sscanf() would look for the end of the whole log. */
		memccpy(text, line, '\n', sizeof(text) - 1);
		assert_int_equal(
			sscanf(text, "free t=%llu #%llu 1/1 mem=0x%llx", &time_ns, &number, &mem),
			3);
		assert_int_equal(time_ns, i);
		assert_int_equal(number, i);
		assert_int_equal(mem, i);
		line = strchr(line, '\n') + 1;
	}
	assert_string_equal(line, "");
	assert_string_equal(file.log, piped.log);
	assert_int_equal(file.stats.out_of_order, 0);
	perf_data_writer_destroy(writer);
}

static void lost_samples_are_not_counted_twice(void **state)
{
	struct perf_data_writer *writer = whole_recording(); /* LOST says 5 */
	const uint64_t dropped_by_filter = 99;

	perf_data_lost_samples(writer, 2);
	perf_data_lost_samples(writer, 3);
	perf_data_raw_record(writer, PERF_RECORD_LOST_SAMPLES, 1 << 15, &dropped_by_filter, 8);
	_cleanup_reading_ struct reading same = read_form(writer, PERF_DATA_FILE);
	assert_log(same, whole_log);

	perf_data_lost_samples(writer, 4);
	_cleanup_reading_ struct reading more = read_form(writer, PERF_DATA_FILE);
	assert_non_null(strstr(more.log, "lost t=400 #2 -1/-1 4\n"));
	perf_data_writer_destroy(writer);
}

static void records_that_are_of_no_use_are_passed_over(void **state)
{
	struct perf_data_writer *writer = whole_recording();
	const uint64_t auxtrace[5] = {16};
	_cleanup_reading_ struct reading reading = {0};

	perf_data_raw_record(writer, 71, 0, auxtrace, sizeof(auxtrace)); /* 16 bytes follow */
	perf_data_raw_bytes(writer, "sixteen bytes it", 16);
	perf_data_raw_record(writer, 79, 0, auxtrace, sizeof(auxtrace)); /* TIME_CONV */
	perf_data_raw_record(writer, PERF_RECORD_THROTTLE, 0, auxtrace, sizeof(auxtrace));
	perf_data_raw_record(writer, 60, 0, NULL, 0);
	perf_data_raw_record(writer, 4000, 0, NULL, 0);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_log(reading, whole_log);
	assert_string_equal(reading.messages, "");
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.unknown_records, 2);
	perf_data_writer_destroy(writer);
}

static void attributes_of_any_version_are_read(void **state)
{
	static const uint32_t sizes[] = {PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER3, 4000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct perf_data_options options = {
			.sample_type = PERF_DATA_DEFAULT_SAMPLE_TYPE,
			.attr_bytes = sizes[i],
		};
		struct perf_data_writer *writer = perf_data_writer_create(&options);

		add_free(writer, perf_data_add_probe(writer, "free", PROBE_ENTRY), 5, 0x11);
		for (enum perf_data_form form = PERF_DATA_FILE; form <= PERF_DATA_PIPE;
		     form += PERF_DATA_PIPE) {
			_cleanup_reading_ struct reading reading = read_form(writer, form);

			assert_log(reading, "free t=5 #1 1/1 mem=0x11 at=0x7000 from=0x0\n");
		}
		perf_data_writer_destroy(writer);
	}
}

static void without_sample_id_all_file_order_holds(void **state)
{
	const struct perf_data_options options = {.no_sample_id_all = true};
	struct perf_data_writer *writer = perf_data_writer_create(&options);
	int event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	_cleanup_reading_ struct reading reading = {0};

	add_free(writer, event, 5, 1);
	perf_data_fork(writer, 7, 7, 1, 1, 6);
	perf_data_comm(writer, 7, 7, 6, "no-trailer", true);
	reading = read_form(writer, PERF_DATA_FILE);
	assert_log(reading, "fork t=6 #0 -1/-1 7/7 by 1/1\n"
			    "comm t=0 #0 -1/-1 no-trailer exec\n"
			    "free t=5 #1 1/1 mem=0x1 at=0x7000 from=0x0\n");
	perf_data_writer_destroy(writer);
}

static int stop_at_second(void *context, const struct perf_sample *sample)
{
	return ++*(int *)context == 2 ? 42 : 0;
}

static void a_callback_ends_the_reading(void **state)
{
	struct perf_data_writer *writer = whole_recording();
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	int nr_calls = 0;
	const struct perf_consumer consumer = {.context = &nr_calls, .on_sample = stop_at_second};
	struct perf_input_stats stats = {0};

	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	assert_int_equal(perf_input_read(fd, "input", &consumer, &stats), 42);
	assert_int_equal(nr_calls, 2);
	perf_data_writer_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_gives_the_same_records),
		cmocka_unit_test(a_killed_recorders_file_is_read_to_its_end),
		cmocka_unit_test(formats_may_come_among_the_records),
		cmocka_unit_test(rounds_put_rings_in_order),
		cmocka_unit_test(records_written_twice_are_used_once),
		cmocka_unit_test(wild_chains_written_twice_are_used_once),
		cmocka_unit_test(samples_of_unknown_events_in_between),
		cmocka_unit_test(many_records_cross_chunks),
		cmocka_unit_test(lost_samples_are_not_counted_twice),
		cmocka_unit_test(records_that_are_of_no_use_are_passed_over),
		cmocka_unit_test(attributes_of_any_version_are_read),
		cmocka_unit_test(without_sample_id_all_file_order_holds),
		cmocka_unit_test(a_callback_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
