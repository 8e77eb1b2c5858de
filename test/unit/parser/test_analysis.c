/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings that lack something: what the analysis finds, and how certain the summary is. */
#include "common/scope.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define PROCESS 10
#define BLOCK	0x5000u

/* A recording of malloc and free, by one process. */
struct recording {
	struct perf_data_writer *writer;
	int malloc_call, free_entry;
};

static struct recording begin_recording_with(const struct perf_data_options *options)
{
	struct recording recording = {.writer = perf_data_writer_create(options)};

	recording.malloc_call = perf_data_add_probe(recording.writer, "malloc", PROBE_CALL);
	recording.free_entry = perf_data_add_probe(recording.writer, "free", PROBE_ENTRY);
	return recording;
}

static struct recording begin_recording(void)
{
	return begin_recording_with(NULL);
}

static void add_sample(const struct recording *recording, int event, uint64_t time_ns,
		       const uint64_t *fields)
{
	perf_data_sample(recording->writer, &(struct perf_data_sample){
						    .event = event,
						    .pid = PROCESS,
						    .tid = PROCESS,
						    .time_ns = time_ns,
						    .fields = fields,
					    });
}

static void add_malloc(const struct recording *recording, uint64_t time_ns, uint64_t block)
{
	add_sample(recording, recording->malloc_call, time_ns,
		   (const uint64_t[]){0x7000, 0x400010, 100, block});
}

static void add_free(const struct recording *recording, uint64_t time_ns, uint64_t block)
{
	add_sample(recording, recording->free_entry, time_ns,
		   (const uint64_t[]){0x7100, block, 0x400020});
}

/*
 * Writes the recording to a file, and frees it. Returns the file's path, which is also in
 * @ret_path.
 */
static int end_recording(struct recording *recording, char ret_path[64])
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(recording->writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(recording->writer);
	snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static int read_all(struct analysis *analysis, const char *const *paths, size_t nr)
{
	assert_int_equal(analysis_init(analysis, NULL, NULL), 0);
	return analysis_read(analysis, paths, nr);
}

static uint64_t count(const struct analysis *analysis, enum heap_anomaly_kind kind)
{
	return heap_tracker_stats(analysis->heaps)->anomalies[kind];
}

/* A block is freed at 20 and again at 40. */
static struct recording two_frees(void)
{
	struct recording recording = begin_recording();

	add_malloc(&recording, 10, BLOCK);
	add_free(&recording, 20, BLOCK);
	return recording;
}

static void check_two_frees(struct recording *recording, bool is_double)
{
	char path[64];
	const char *paths[] = {path};
	struct analysis analysis;
	int fd;

	add_free(recording, 40, BLOCK);
	fd = end_recording(recording, path);
	assert_int_equal(read_all(&analysis, paths, 1), 0);
	assert_int_equal(count(&analysis, ANOMALY_DOUBLE_FREE), is_double);
	assert_int_equal(count(&analysis, ANOMALY_FREE_UNKNOWN), !is_double);
	analysis_deinit(&analysis);
	close(fd);
}

static void double_free_needs_all_events(void **state)
{
	struct recording complete = two_frees(), loses_between = two_frees(),
			 loses_before = begin_recording(), loses_sometime = two_frees();

	check_two_frees(&complete, true);
	perf_data_lost_on(loses_between.writer, loses_between.free_entry, 0, 30, 1);
	check_two_frees(&loses_between, false);
	add_malloc(&loses_before, 2, BLOCK + 64);
	perf_data_lost_on(loses_before.writer, loses_before.free_entry, 0, 5, 1);
	add_malloc(&loses_before, 10, BLOCK);
	add_free(&loses_before, 20, BLOCK);
	check_two_frees(&loses_before, true);
	perf_data_lost_samples(loses_sometime.writer, 1);
	check_two_frees(&loses_sometime, false);
}

/* Reads the recordings, the files of one session, and frees them. Returns the analysis's result. */
static int read_files(struct analysis *analysis, struct recording *recordings, size_t nr)
{
	char names[3][64];
	const char *paths[3] = {names[0], names[1], names[2]};
	int fds[3], err;

	assert_true(nr <= 3);
	for (size_t i = 0; i < nr; i++)
		fds[i] = end_recording(&recordings[i], names[i]);
	err = read_all(analysis, paths, nr);
	for (size_t i = 0; i < nr; i++)
		close(fds[i]);
	return err;
}

/* Three blocks, allocated 10 apart from each other, and held. */
static struct recording three_blocks(uint64_t time_ns)
{
	struct recording recording = begin_recording();

	for (uint64_t i = 0; i < 3; i++)
		add_malloc(&recording, time_ns + 10 * i, BLOCK + time_ns + 0x100 * i);
	return recording;
}

/* What the summary says after the held blocks; the caller frees it. */
static char *certainty(struct analysis *analysis)
{
	const struct leaks_options options = {0};
	struct leak_report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(leak_report_init(&report, analysis, &options), 0);
	leak_words_certain(out, &report);
	leak_report_deinit(&report);
	fclose(out);
	return text;
}

static void check_files(struct recording *files, size_t nr, size_t nr_gaps, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	struct analysis analysis;

	assert_int_equal(read_files(&analysis, files, nr), 0);
	assert_int_equal(analysis.nr_gaps, nr_gaps);
	text = certainty(&analysis);
	assert_string_equal(text, expected);
	analysis_deinit(&analysis);
}

#define CHECK(nr_gaps, expected, ...)                                                              \
	check_files((struct recording[]){__VA_ARGS__},                                             \
		    sizeof((struct recording[]){__VA_ARGS__}) / sizeof(struct recording), nr_gaps, \
		    expected)

static void pauses_between_files(void **state)
{
	CHECK(0, ", certainly not freed", three_blocks(1000));
	CHECK(0, ", certainly not freed", three_blocks(1000), three_blocks(1030),
	      three_blocks(1060));
	/* While the target was idle, a file stayed empty. */
	CHECK(0, ", certainly not freed", three_blocks(1000), begin_recording(),
	      three_blocks(1030));
	/* Three blocks may have been freed in the gap; those after it are held. */
	CHECK(1, ", 3 of them certainly not freed", three_blocks(1000), three_blocks(2000));
}

static void late_records(void **state)
{
	struct recording late = three_blocks(1000);

	/* Each round ends with the records of the one before. */
	perf_data_finished_round(late.writer);
	perf_data_finished_round(late.writer);
	add_malloc(&late, 500, BLOCK);
	CHECK(0, "", late);
	/* Rings are read one after the other, so files overlap. */
	CHECK(0, "", three_blocks(1000), three_blocks(1015));
}

/* Of processes that have ended, the mappings of the last ones are known: records may come late. */
static void ended_processes_take_no_memory_for_mappings(void **state)
{
	enum { FIRST = 100, THREADED = 101, NR = 3000, CODE = 0x400000 };
	struct recording recording = begin_recording();
	struct analysis analysis;
	char path[64];
	int fd;

	for (pid_t pid = FIRST; pid < FIRST + NR; pid++) {
		uint64_t time_ns = (uint64_t)pid * 10;

		perf_data_fork(recording.writer, pid, pid, PROCESS, PROCESS, time_ns);
		perf_data_mmap(recording.writer, pid, time_ns + 1, CODE, 4096, 0, "/bin/true");
		if (pid == THREADED)
			perf_data_fork(recording.writer, pid, 5, pid, pid, time_ns + 2);
		perf_data_exit(recording.writer, pid, pid, time_ns + 3);
	}
	fd = end_recording(&recording, path);
	assert_int_equal(read_all(&analysis, (const char *[]){path}, 1), 0);
	assert_false(stack_store_is_code(analysis.stacks, FIRST, CODE + 1));
	assert_true(stack_store_is_code(analysis.stacks, THREADED, CODE + 1));
	assert_true(stack_store_is_code(analysis.stacks, FIRST + NR - 1, CODE + 1));
	analysis_deinit(&analysis);
	close(fd);
}

/* An operation from before the start is not far after it, and ends nothing. */
static void late_records_move_no_bounds(void **state)
{
	struct recording late = three_blocks(1000);
	struct analysis analysis;
	char path[64];
	int fd;

	perf_data_finished_round(late.writer);
	perf_data_finished_round(late.writer);
	add_malloc(&late, 500, BLOCK + 0x1000);
	fd = end_recording(&late, path);
	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	analysis.until_ns = 1000000;
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	assert_false(analysis.was_enough);
	assert_int_equal(heap_tracker_stats(analysis.heaps)->allocations, 4);
	assert_int_equal(analysis.start_ns, 1000);
	assert_true(analysis.end_ns > 1000);
	analysis_deinit(&analysis);
	close(fd);
}

static void files_that_do_not_belong_together(void **state)
{
	const struct perf_data_options other = {.first_id = 7000};
	/* Ids that leakrec gives say nothing. */
	const struct perf_data_options own = {.first_id = UINT64_C(1) << 32};
	struct recording two[] = {three_blocks(1000), begin_recording_with(&other)};
	struct recording unknown[] = {three_blocks(1000), begin_recording_with(&own)};
	struct recording disordered[] = {three_blocks(3000000000), three_blocks(1000)};
	struct analysis analysis;

	add_malloc(&two[1], 1030, BLOCK);
	assert_int_equal(read_files(&analysis, two, 2), -EXDEV);
	assert_int_equal(heap_tracker_stats(analysis.heaps)->allocations, 3);
	analysis_deinit(&analysis);
	add_malloc(&unknown[1], 1030, BLOCK);
	assert_int_equal(read_files(&analysis, unknown, 2), 0);
	analysis_deinit(&analysis);
	assert_int_equal(read_files(&analysis, disordered, 2), -EXDEV);
	analysis_deinit(&analysis);
}

static void what_contradicts_certainty(void **state)
{
	struct recording loses = begin_recording(), misses = three_blocks(1000);

	/* The blocks are younger than the loss. */
	add_malloc(&loses, 10, BLOCK);
	add_free(&loses, 20, BLOCK);
	perf_data_lost_on(loses.writer, loses.free_entry, 0, 30, 1);
	add_malloc(&loses, 40, BLOCK);
	CHECK(0, "", loses);
	add_malloc(&misses, 2000, BLOCK + 1000); /* a block that was held */
	CHECK(0, ", 0 of them certainly not freed", misses);
}

/* Three blocks of a process that creates a thread. @has_events: the thread has events, too. */
static struct recording threaded(bool inherits, bool has_events)
{
	const struct perf_data_options options = {.no_inherit = !inherits};
	struct recording recording = begin_recording_with(&options);

	/* perf record knew this thread before. */
	perf_data_fork(recording.writer, PROCESS, PROCESS, 1, 1, 0);
	for (uint64_t i = 0; i < 3; i++)
		add_malloc(&recording, 1000 + 10 * i, BLOCK + 0x100 * i);
	perf_data_fork(recording.writer, PROCESS, PROCESS + 1, PROCESS, PROCESS, 1030);
	if (has_events)
		perf_data_sample(recording.writer,
				 &(struct perf_data_sample){
					 .event = recording.free_entry,
					 .pid = PROCESS,
					 .tid = PROCESS + 1,
					 .time_ns = 1040,
					 .fields = (const uint64_t[]){0x7100, BLOCK, 0x400020},
				 });
	return recording;
}

static void threads_that_are_not_recorded(void **state)
{
	struct recording recordings[] = {threaded(false, false)};
	struct input_advice advice;
	struct analysis analysis;

	CHECK(0, "", threaded(false, false));
	/* It did nothing. */
	CHECK(0, ", certainly not freed", threaded(true, false));
	/* perf record -a --no-inherit */
	CHECK(0, ", certainly not freed", threaded(false, true));
	assert_int_equal(read_files(&analysis, recordings, 1), 0);
	input_advice_on_recording(&analysis, &advice);
	assert_int_equal(advice.nr, 1);
	assert_non_null(strstr(advice.lines[0], "created meanwhile (1 or more)"));
	assert_non_null(strstr(advice.lines[0], "--per-thread"));
	analysis_deinit(&analysis);
}

struct command_line {
	uint8_t section[256];
	size_t nr;
};

/* The words of @text, as the section CMDLINE has them. */
static struct command_line command_line(const char *text)
{
	struct command_line line = {.nr = 4};
	char words[128], *left = words, *word;

	snprintf(words, sizeof(words), "%s", text);
	while ((word = strsep(&left, " "))) {
		const uint32_t size = (uint32_t)(strlen(word) + 8) / 8 * 8;

		memcpy(line.section + line.nr, &size, sizeof(size));
		memcpy(line.section + line.nr + sizeof(size), word, strlen(word));
		line.nr += sizeof(size) + size;
		line.section[0]++;
	}
	return line;
}

static void check_advice(const char *text, uint32_t dump_bytes, const char *on_losses,
			 const char *on_short_stacks)
{
	const struct command_line line = command_line(text);
	struct analysis analysis = {.input.dump_bytes = dump_bytes};

	analysis.input.command = perf_command_parse(line.section, line.nr);
	assert_non_null(strstr(input_advice_on_losses(&analysis), on_losses));
	assert_non_null(strstr(input_advice_on_short_stacks(&analysis), on_short_stacks));
	/* If the section is cut off, less is known, and nothing beyond its end is read. */
	for (size_t nr = 0; nr < line.nr; nr++) {
		uint8_t *cut = malloc(nr ? nr : 1);

		assert_non_null(cut);
		memcpy(cut, line.section, nr);
		perf_command_parse(cut, nr);
		free(cut);
	}
}

static void check_sizes(const char *text, uint64_t min_bytes, uint64_t max_bytes)
{
	const struct command_line line = command_line(text);
	struct perf_command command = perf_command_parse(line.section, line.nr);

	assert_int_equal(command.has_sizes, max_bytes != 0);
	assert_int_equal(command.sizes.min_bytes, min_bytes);
	assert_int_equal(command.sizes.max_bytes, max_bytes);
}

/* The option by which calls are missing, or "". */
static const char *partial(const char *text)
{
	const struct command_line line = command_line(text);
	const char *option = perf_command_parse(line.section, line.nr).partial;

	return option ? option : "";
}

static void parts_are_known(void **state)
{
	assert_string_equal(partial("leakrec --filter malloc:bytes>4096 -p 10"), "--filter");
	assert_string_equal(partial("leakrec --filter=malloc:bytes>4096 -p 10"), "--filter");
	assert_string_equal(partial("leakrec --narrow 1:old.data -p 10"), "--narrow");
	assert_string_equal(partial("leakrec -- ls --filter x"), "");
	assert_string_equal(partial("leakrec -p 10"), "");
}

static void recorded_sizes_are_known(void **state)
{
	check_sizes("leakrec --size 200 -p 10", 200, 200);
	check_sizes("leakrec --size=4..8k -p 10", 4096, 8192);
	check_sizes("leakrec -s 3k -- ls -s 5", 3072, 3072);
	check_sizes("leakrec -s200 ls", 200, 200);
	check_sizes("leakrec -- ls -s 5", 0, 0);
	check_sizes("perf record --size 5", 0, 0);
}

/* The advice never is what the user did already, or what cannot be done. */
static void advice_knows_the_recorder(void **state)
{
	const char *longer = "use a larger --call-graph dwarf,BYTES";
	const char *longest = "--call-graph dwarf,65000 gives the largest";

	check_advice("/usr/bin/leakrec -p 10", 0, "with larger rings (-m)", longest);
	check_advice("leakrec --on-overload drop -p 10", 0, "without --on-overload drop", longest);
	check_advice("leakrec --on-overload=drop", 0, "without --on-overload drop", longest);
	check_advice("leakrec --on-overload stop -- drop", 0, "with larger rings (-m)", longest);
	check_advice("leakrec -- x --on-overload drop", 0, "record with larger rings", longest);
	check_advice("leakrec --call-graph dwarf,4k -p 10", 0, "-m", longer);
	check_advice("leakrec --call-graph=dwarf,65000 -p 10", 0, "-m", "than a dump can be");
	check_advice("leakrec --raw-stacks -p 10", 8192, "-m", longer);
	check_advice("/usr/bin/perf record -g", 8192, "or with leakrec", longer);
	check_advice("perf record --call-graph dwarf,65528", 65528, "-m", "than a dump can be");
	check_advice("other", 0, "record with larger rings (-m)", "than a dump can be");
}

static void check_lifetimes(const struct site *site, double stays, const char *expected)
{
	const struct site_verdict verdict = {
		.site = site, .in_windows = true, .stays = stays, .median_s = -1, .p99_s = -1};
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	leak_words_lifetimes(out, NULL, &verdict);
	fclose(out);
	assert_non_null(strstr(text, expected));
}

/* Without an exponent; and not at all if all that were freed had been in flight. */
static void says_how_many_stay(void **state)
{
	const struct site site = {.allocations = 7}, in_flight = {.allocations = 7, .frees = 3};

	check_lifetimes(&site, 0.997, "7 seen, about 99.7 % stay; ");
	check_lifetimes(&site, -1, "7 seen, none of them freed; ");
	check_lifetimes(&in_flight, -1, "7 seen, what share stays is not known; ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(double_free_needs_all_events),
		cmocka_unit_test(pauses_between_files),
		cmocka_unit_test(late_records),
		cmocka_unit_test(ended_processes_take_no_memory_for_mappings),
		cmocka_unit_test(late_records_move_no_bounds),
		cmocka_unit_test(files_that_do_not_belong_together),
		cmocka_unit_test(what_contradicts_certainty),
		cmocka_unit_test(threads_that_are_not_recorded),
		cmocka_unit_test(says_how_many_stay),
		cmocka_unit_test(parts_are_known),
		cmocka_unit_test(recorded_sizes_are_known),
		cmocka_unit_test(advice_knows_the_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
