/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares each format of a generated recording with test/golden/report.FORMAT. UPDATE_GOLDEN=1
 * rewrites these files: review the difference before you commit it. With an argument, it only
 * writes the recording to that file, for tests with the readers of the formats.
 */
#include "common/scope.h"
#include "report/formats/held_history.h"
#include "report/report_formats.h"
#include "report/text/leak_words.h"
#include "report/text/leaks_writer.h"
#include "report/trees/diff_tree.h"
#include "test/support/perf_data_writer.h"

#include <fcntl.h>
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

#define MS UINT64_C(1000000)
/* A name that no format may mistake for its syntax. */
#define HOSTILE "/nowhere/=a;b <script>\"#(1)\\\n\xff,%s.so"

/* Text formats other than trees and HTML. */
static const char *const plain_texts[] = {"json",      "csv",	    "folded", "gprof2dot",
					  "callgrind", "heaptrack", "massif"};

static const uint64_t by_main[] = {0x101010, 0x202020, 0x201010};
static const uint64_t by_hostile[] = {0x101010, 0x303030, 0x202020, 0x201010};
static const uint64_t recursive[] = {0x101010, 0x202020, 0x202020, 0x202020, 0x201010};

struct maker {
	struct perf_data_writer *writer;
	int call, free_entry;
	uint64_t time_ns;
};

static void add_call(struct maker *maker, uint64_t size, uint64_t block, const uint64_t *chain,
		     size_t nr)
{
	const struct perf_data_sample sample = {
		.event = maker->call,
		.pid = 7,
		.tid = size > 100 ? 9 : 8,
		.time_ns = maker->time_ns += 10 * MS,
		.fields = (uint64_t[]){0x100800, chain[0], size, block},
		.callchain = chain,
		.nr_callchain = nr,
	};

	perf_data_sample(maker->writer, &sample);
}

static void add_free(struct maker *maker, uint64_t block)
{
	const struct perf_data_sample sample = {
		.event = maker->free_entry,
		.pid = 7,
		.tid = 8,
		.time_ns = maker->time_ns += 10 * MS,
		.fields = (uint64_t[]){0x100900, block, 0x202020},
	};

	perf_data_sample(maker->writer, &sample);
}

/* A growing leak, a start-up block, blocks of a hostile module and a recursive stack, and a peak.
 */
static struct perf_data_writer *make_recording(bool leaks)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL), .time_ns = 1000 * MS};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	maker.free_entry = perf_data_add_probe(maker.writer, "free", PROBE_ENTRY);
	perf_data_comm(maker.writer, 7, 7, 1, "server", true);
	perf_data_comm(maker.writer, 7, 8, 1, "a b\"<i>", false);
	perf_data_mmap(maker.writer, 7, 1, 0x100000, 0x100000, 0, "/nowhere/libc.so.6");
	perf_data_mmap(maker.writer, 7, 1, 0x200000, 0x100000, 0, "/nowhere/server");
	perf_data_mmap(maker.writer, 7, 1, 0x300000, 0x100000, 0, HOSTILE);
	for (uint64_t i = 0; leaks && i < 20; i++) {
		add_call(&maker, 3072, 0x10000 + i * 0x1000, by_main, 3);
		if (i == 10)
			add_call(&maker, 100000, 0x900000, by_hostile, 4);
		if (i == 12)
			add_free(&maker, 0x900000);
	}
	if (leaks) {
		add_call(&maker, 500, 0xa00000, by_hostile, 4);
		add_call(&maker, 16, 0xb00000, recursive, 5);
	}
	add_call(&maker, 64, 0xc00000, by_main, 3);
	add_free(&maker, 0xc00000);
	return maker.writer;
}

/* The output of leakparse --format; the caller frees it. */
static char *format_text(struct perf_data_writer *writer, const char *name,
			 const struct tree_options *options)
{
	const struct stack_store_options stacks = {0};
	const struct leaks_options all = {0};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	const struct report_format *format = report_format_find(name);
	struct held_history *history = held_history_create(NULL);
	const struct heap_observer observer = {.context = history,
					       .on_change = held_history_change};
	struct analysis analysis;
	struct leak_report report;
	char path[64], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(fd >= 0 && out && (format || strcmp(name, "leaks") == 0));
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, &stacks, &observer), 0);
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	assert_int_equal(leak_report_init(&report, &analysis, &all), 0);
	const struct report_input input = {.report = &report, .tree = options, .history = history};
	assert_int_equal(format ? report_write(out, format, &input) : leaks_write(out, &report), 0);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	held_history_destroy(history);
	fclose(out);
	perf_data_writer_destroy(writer);
	return text;
}

/* Compares and frees @text. */
static void assert_golden(const char *name, char *text)
{
	_cleanup_free_ char *path = NULL, *expected = NULL;
	size_t max = 0;
	FILE *file;

	assert_true(asprintf(&path, TEST_SOURCE_DIR "/golden/report.%s", name) > 0);
	if (getenv("UPDATE_GOLDEN")) {
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(text, file);
		fclose(file);
	}
	file = fopen(path, "r");
	if (!file)
		fail_msg("no %s", path);
	if (getdelim(&expected, &max, '\0', file) < 0)
		fail_msg("%s is empty", path);
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
}

static void check(const char *golden, const char *format, const struct tree_options *options)
{
	assert_golden(golden, format_text(make_recording(true), format, options));
}

static void trees(void **state)
{
	struct tree_options options = {.threshold_percent = 1};

	check("tree", "tree", &options);
	options.main_first = true;
	options.utf8 = true;
	check("tree-inverted", "tree", &options);
	options = (struct tree_options){.by = TREE_BY_SIZE, .depth = 2};
	check("tree-by-size", "tree", &options);
	options.by = TREE_BY_MODULE;
	check("tree-by-module", "tree", &options);
	options = (struct tree_options){.by = TREE_BY_THREAD, .threshold_percent = 50};
	check("tree-by-thread", "tree", &options);
}

static void other_formats(void **state)
{
	const struct tree_options options = {.threshold_percent = 1};

	for (size_t i = 0; i < ARRAY_SIZE(plain_texts); i++)
		check(plain_texts[i], plain_texts[i], &options);
}

static void the_page_knows_the_users_frame(void **state)
{
	_cleanup_free_ char *page = format_text(make_recording(true), "html", NULL);

	/*
	 * In each stack, malloc and its caller in the same nameless module come before the user's
	 * frame.
	 */
	assert_non_null(strstr(page, "\"user\":2,"));
}

/* Of a system call without a callchain, no frame is known. The caller destroys the writer. */
static struct perf_data_writer *make_mapping_without_stack(void)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL), .time_ns = 1000 * MS};
	struct perf_data_sample sample = {.pid = 7, .tid = 8, .time_ns = 2000 * MS};
	int enter = perf_data_add_event(maker.writer, "syscalls", "sys_enter_mmap",
					"u64 addr\nu64 len\nu64 prot\nu64 flags\nu64 fd\nu64 off");
	int leave = perf_data_add_event(maker.writer, "syscalls", "sys_exit_mmap", "u64 ret");

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	add_call(&maker, 24, 0x10000, by_main, 3);
	sample.event = enter;
	sample.fields = (uint64_t[]){0, 0x5000, 3, 0x22, 0, 0};
	perf_data_sample(maker.writer, &sample);
	sample.event = leave;
	sample.time_ns++;
	sample.fields = (uint64_t[]){0x70000000};
	perf_data_sample(maker.writer, &sample);
	return maker.writer;
}

/* They are not left out of what a format adds up to. */
static void blocks_without_a_stack_have_a_function(void **state)
{
	static const struct {
		const char *name, *function, *amount;
	} formats[] = {
		{"folded", "(no stack) 20480\n", ""},
		{"gprof2dot", "{\"name\":\"(no stack)\"}", "\"cost\":[20480,1]}"},
		{"callgrind", ") (no stack)\n0 20480 1\n", "summary: 20504 2\n"},
		{"heaptrack", "s (no stack)\n", "a 5000 "},
		{"massif", " n0: 20480 0x0: (no stack)\n", "mem_heap_B=20504\n"},
		{"tree", "(no stack)\n", ""},
	};

	const struct tree_options options = {0};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_free_ char *text =
			format_text(make_mapping_without_stack(), formats[i].name, &options);

		assert_non_null(strstr(text, formats[i].function));
		assert_non_null(strstr(text, formats[i].amount));
	}
}

/* An object and its part, which come together: one cause of two stacks, as in the summary. */
static struct perf_data_writer *make_joint_leak(void)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL), .time_ns = 1000 * MS};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	perf_data_mmap(maker.writer, 7, 1, 0x200000, 0x100000, 0, "/nowhere/server");
	for (uint64_t i = 0; i < 40; i++) {
		add_call(&maker, 200, 0x10000 + i * 0x1000, by_main, 3);
		maker.time_ns -= 10 * MS - 1000; /* right after it */
		add_call(&maker, 300, 0x10800 + i * 0x1000, by_hostile, 4);
	}
	return maker.writer;
}

static void json_has_the_causes(void **state)
{
	_cleanup_free_ char *json = format_text(make_joint_leak(), "json", NULL);
	_cleanup_free_ char *leaks = format_text(make_joint_leak(), "leaks", NULL);
	const char *causes = strstr(json, "\n\"causes\":[\n"),
		   *stacks = strstr(json, "\n\"stacks\":[");

	assert_non_null(strstr(leaks, "# cause 1, 2 stacks: growth, firm: 80 blocks, "));
	assert_non_null(causes);
	assert_non_null(stacks);
	assert_non_null(strstr(causes, "{\"cause\":1,\"verdict\":\"growth\",\"doubts\":[],"
				       "\"held_blocks\":80,\"held_bytes\":20000,"
				       "\"growth\":{\"blocks_per_s\":"));
	assert_non_null(strstr(causes, "},\"stacks\":2,\"stack_id\":2}],\n"));
	assert_non_null(strstr(stacks, "\"stack_id\":1,\"cause\":1,"));
	assert_non_null(strstr(stacks, "\"stack_id\":2,\"cause\":1,"));
}

/* Nothing is, if an event came too late for its time: any block may have been freed before. */
static void the_page_says_what_is_certain_as_the_summary_does(void **state)
{
	struct perf_data_writer *late = make_recording(true);
	struct maker maker = {.writer = late, .time_ns = 500 * MS};
	_cleanup_free_ char *page = format_text(make_recording(true), "html", NULL);
	_cleanup_free_ char *doubtful = NULL;

	/* Each round ends with the records of the one before. */
	perf_data_finished_round(late);
	perf_data_finished_round(late);
	maker.call = perf_data_add_probe(late, "malloc", PROBE_CALL);
	add_call(&maker, 8, 0xd00000, by_main, 3);
	doubtful = format_text(late, "html", NULL);
	assert_non_null(strstr(page, "\"firm_blocks\":22,"));
	assert_non_null(strstr(doubtful, "out of order in time"));
	assert_null(strstr(doubtful, "\"firm_blocks\":"));
}

/* The page shows names as the text formats do: nothing in them is invisible. */
static void the_page_has_readable_names(void **state)
{
	struct perf_data_writer *writer = make_recording(true);
	_cleanup_free_ char *page = NULL;

	perf_data_comm(writer, 7, 9, 2, "free\u202e\u2066", false);
	page = format_text(writer, "html", NULL);
	assert_non_null(strstr(page, "\"free\\\\xe2\\\\x80\\\\xae\\\\xe2\\\\x81\\\\xa6\""));
	assert_non_null(strstr(page, "#(1)\\\\x5c\\\\x0a\\\\xff,%s.so"));
}

/* A process that ends, and one that lives: each of three stacks is listed for both. */
static void the_page_has_room_for_sites_listed_twice(void **state)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL), .time_ns = 1000 * MS};
	_cleanup_free_ char *page = NULL;

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	for (int pid = 7; pid <= 8; pid++) {
		perf_data_comm(maker.writer, pid, pid, 1, "server", true);
		for (uint64_t i = 0; i < 3; i++) {
			const uint64_t chain[] = {0x101010 + i, 0x201010};
			const struct perf_data_sample sample = {
				.event = maker.call,
				.pid = pid,
				.tid = pid,
				.time_ns = maker.time_ns += 10 * MS,
				.fields = (uint64_t[]){0x100800, chain[0], 64, 0x1000 * (i + 1)},
				.callchain = chain,
				.nr_callchain = 2,
			};

			perf_data_sample(maker.writer, &sample);
		}
		if (pid == 7)
			perf_data_exit(maker.writer, pid, pid, maker.time_ns);
		maker.time_ns += 1000 * MS;
	}
	page = format_text(maker.writer, "html", NULL);
	assert_non_null(strstr(page, "\"stacks\":6,"));
}

/* leakplot.bats plots this golden file. */
static void leaks(void **state)
{
	check("leaks", "leaks", NULL);
}

/* The changes from @from_ms to @to_ms after the start; the caller frees them. */
static char *diff_text(uint64_t from_ms, uint64_t to_ms, const struct tree_options *tree)
{
	const struct stack_store_options stacks = {0};
	const struct diff_writer writer = {tree, diff_tree_write};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	struct perf_data_writer *recording = make_recording(true);
	struct analysis analysis = {0};
	struct diff_report diff;
	const struct heap_observer observer = {.context = &diff, .on_change = diff_report_change};
	char path[64], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(fd >= 0 && out);
	assert_int_equal(perf_data_write(recording, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(recording);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(diff_report_init(&diff, &analysis, out, tree ? &writer : NULL), 0);
	intervals_set_range(diff.intervals, from_ms * MS, to_ms * MS);
	assert_int_equal(analysis_init(&analysis, &stacks, &observer), 0);
	analysis.intervals = diff.intervals;
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	assert_int_equal(diff_report_finish(&diff), 0);
	analysis_deinit(&analysis);
	diff_report_deinit(&diff);
	fclose(out);
	return text;
}

static void changes(void **state)
{
	struct tree_options options = {.threshold_percent = 1};

	assert_golden("changes", diff_text(0, 1000, NULL));
	assert_golden("changes-tree", diff_text(0, 1000, &options));
	/* A block of 100,000 bytes is freed here: it did not grow, so it comes last. */
	options.main_first = true;
	assert_golden("changes-tree-inverted", diff_text(115, 200, &options));
	options = (struct tree_options){.by = TREE_BY_MODULE};
	assert_golden("changes-tree-by-module", diff_text(135, 145, &options));
	/* Nothing happened. */
	assert_golden("changes-tree-empty", diff_text(5000, 6000, &options));
}

/* A rate has a digit, whatever its scale, and so has its error, unless it is below the last one. */
static void rates_are_never_zero(void **state)
{
	const struct resource_kind descriptor = {.name = "fd"};
	const struct {
		double blocks, blocks_error, bytes, bytes_error;
		const struct resource_kind *kind;
		const char *text;
	} cases[] = {
		{75.2, 25.1, 230e3, 77e3, NULL, "+75 +-25 blocks/s, +220 KiB/s +-80 KiB/s"},
		{0.24, 0.09, 720, 270, NULL, "+0.24 +-0.09 blocks/s, +720 bytes/s +-270 bytes/s"},
		{100, 0.001, 1e6, 10, NULL, "+100 blocks/s, +977 KiB/s +-10 bytes/s"},
		{1.2, 0.4, 4.8, 1.6, NULL, "+1.2 +-0.4 blocks/s, +5 bytes/s +-2 bytes/s"},
		{0.2, 0.05, 0.8, 0.2, NULL, "+12 +-3 blocks/min, +48 bytes/min +-12 bytes/min"},
		{1 / 500.0, 1 / 2500.0, 256 / 500.0, 256 / 2500.0, NULL,
		 "+0.12 +-0.02 blocks/min, +31 bytes/min +-6 bytes/min"},
		{1, 0.0163, 16, 0.26, NULL, "+1.00 +-0.02 blocks/s, +16 bytes/s"},
		{1 / 720.0, 1e-5, 0, 0, &descriptor, "+5.00 +-0.04 handles/h"},
		{2 / 86400.0, 0.5 / 86400, 3e6 / 86400, 75e4 / 86400, NULL,
		 "+2.0 +-0.5 blocks/day, +2.9 MiB/day +-700 KiB/day"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct growth_rate rate = {
			.blocks_per_s = cases[i].blocks,
			.blocks_error = cases[i].blocks_error,
			.bytes_per_s = cases[i].bytes,
			.bytes_error = cases[i].bytes_error,
		};
		_cleanup_free_ char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		leak_words_rate(out, cases[i].kind, &rate);
		fclose(out);
		assert_string_equal(text, cases[i].text);
	}
}

/* 256 bytes in 500 seconds, for eight hours. */
static void slow_growth_is_told(void **state)
{
	struct perf_data_writer *writers[2];
	_cleanup_free_ char *leaks = NULL, *page = NULL;

	for (size_t k = 0; k < 2; k++) {
		struct maker maker = {.writer = perf_data_writer_create(NULL)};

		maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
		for (uint64_t i = 0; i < 60; i++) {
			maker.time_ns += 500000 * MS;
			add_call(&maker, 256, 0x10000 + i * 0x1000, by_main, 3);
		}
		writers[k] = maker.writer;
	}
	leaks = format_text(writers[0], "leaks", NULL);
	assert_non_null(strstr(leaks, "# 1. growth, firm: 60 blocks, 15.0 KiB, +0.12 +-0.0"));
	assert_non_null(strstr(leaks, " blocks/min, +3"));
	page = format_text(writers[1], "html", NULL);
	assert_non_null(strstr(page, "\"rate_day_bytes\":4"));
}

static void nothing_leaked(void **state)
{
	const struct tree_options options = {.threshold_percent = 1};
	_cleanup_free_ char *text = format_text(make_recording(false), "tree", &options);

	assert_string_equal(text, "Nothing leaked: all blocks that were allocated during the "
				  "recording have been freed.\n");
	free(format_text(make_recording(false), "html", &options));
	for (size_t i = 0; i < ARRAY_SIZE(plain_texts); i++)
		free(format_text(make_recording(false), plain_texts[i], &options));
}

static void does_not_claim_that_nothing_leaked(void **state)
{
	const struct tree_options options = {.threshold_percent = 1};
	struct perf_data_writer *losing = make_recording(false), *windows = make_recording(false);
	const struct perf_data_sample close = {
		.event = perf_data_add_event(windows, "leakrec", "window", "u32 open"),
		.pid = 7,
		.tid = 7,
		.time_ns = 2000 * MS,
		.fields = (uint64_t[]){0},
	};
	_cleanup_free_ char *text = NULL, *in_windows = NULL;

	perf_data_lost(losing, 1030 * MS, 5);
	text = format_text(losing, "tree", &options);
	assert_string_equal(text, "No recorded block is held.\n");
	perf_data_sample(windows, &close);
	in_windows = format_text(windows, "tree", &options);
	assert_string_equal(in_windows, "No block is known to be held; not all were observed.\n");
}

/* realloc() was left, by longjmp() or an exception, before the call of calloc() around it returned.
 */
static void does_not_claim_it_where_a_block_is_missing(void **state)
{
	const struct tree_options options = {.threshold_percent = 1};
	struct perf_data_writer *writer = make_recording(false);
	const int outer = perf_data_add_probe(writer, "calloc", PROBE_ENTRY);
	const int inner = perf_data_add_probe(writer, "realloc", PROBE_ENTRY);
	const int returned = perf_data_add_probe(writer, "calloc", PROBE_RETURN);
	struct perf_data_sample sample = {.pid = 7, .tid = 8, .fields = (uint64_t[5]){0}};
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < 3; i++) {
		sample.event = (int[]){outer, inner, returned}[i];
		sample.time_ns = 2000 * MS + i;
		perf_data_sample(writer, &sample);
	}
	text = format_text(writer, "tree", &options);
	assert_string_equal(text, "No recorded block is held.\n");
}

#define NAME(name) #name,

static void are_found_by_their_names(void **state)
{
	static const char *const names[] = {REPORT_FORMATS(NAME)};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(report_format_find(names[i])->name, names[i]);
	assert_null(report_format_find("leaks"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees),
		cmocka_unit_test(other_formats),
		cmocka_unit_test(leaks),
		cmocka_unit_test(changes),
		cmocka_unit_test(rates_are_never_zero),
		cmocka_unit_test(slow_growth_is_told),
		cmocka_unit_test(nothing_leaked),
		cmocka_unit_test(does_not_claim_that_nothing_leaked),
		cmocka_unit_test(does_not_claim_it_where_a_block_is_missing),
		cmocka_unit_test(are_found_by_their_names),
		cmocka_unit_test(the_page_knows_the_users_frame),
		cmocka_unit_test(blocks_without_a_stack_have_a_function),
		cmocka_unit_test(json_has_the_causes),
		cmocka_unit_test(the_page_says_what_is_certain_as_the_summary_does),
		cmocka_unit_test(the_page_has_readable_names),
		cmocka_unit_test(the_page_has_room_for_sites_listed_twice),
	};

	if (argc > 1) {
		struct perf_data_writer *writer =
			argc > 2 ? make_mapping_without_stack() : make_recording(true);
		int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		int err = fd < 0 ? -1 : perf_data_write(writer, PERF_DATA_FILE, fd);

		perf_data_writer_destroy(writer);
		if (fd >= 0)
			close(fd);
		return err ? 1 : 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
