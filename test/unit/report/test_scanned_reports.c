/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reports say of a recording with a scan: leakrec --scan. */
#include "common/scope.h"
#include "report/formats/held_history.h"
#include "report/report_formats.h"
#include "report/text/leaks_writer.h"
#include "report/text/summary_report.h"
#include "test/support/perf_data_writer.h"

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

#define SECOND UINT64_C(1000000000)
#define PID    7
/* Block N is at HEAP + N * APART, and was allocated N seconds after the start. */
#define HEAP	   0x10000
#define APART	   0x1000
#define BYTES	   100
#define NR_BLOCKS  12
#define NR_SCANNED 10

static const uint64_t to_cache[] = {0x101010, 0x201010}, to_lose[] = {0x102020, 0x201010};

static struct analysis analysis;
static struct leak_report report;

/* Even blocks are for a cache, odd ones for nothing. */
static struct perf_data_writer *make_recording(void)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int call = perf_data_add_probe(writer, "malloc", PROBE_CALL);

	perf_data_comm(writer, PID, PID, 1, "server", true);
	perf_data_mmap(writer, PID, 1, 0x100000, 0x200000, 0, "/nowhere/server");
	for (uint64_t i = 0; i < NR_BLOCKS; i++) {
		const uint64_t *stack = i % 2 ? to_lose : to_cache;
		const struct perf_data_sample sample = {
			.event = call,
			.pid = PID,
			.tid = PID,
			.time_ns = (i + 1) * SECOND,
			.fields = (uint64_t[]){0x100800, stack[0], BYTES, HEAP + i * APART},
			.callchain = stack,
			.nr_callchain = 2,
		};

		perf_data_sample(writer, &sample);
	}
	return writer;
}

static void say(enum reach_class class, uint64_t block, uint64_t bytes, uint64_t holder)
{
	const struct perf_sample sample = {
		.origin.pid = PID,
		.mark_number = class,
		.args = {[REACH_ADDRESS] = HEAP + block * APART,
			 [REACH_BYTES] = bytes,
			 [REACH_STOPPED] = NR_SCANNED * SECOND + 1,
			 [REACH_HOLDER] = holder},
	};

	assert_int_equal(reach_add(analysis.reach, &sample), 0);
}

/* The scan has seen the first NR_SCANNED blocks. Tests add which of them it did not find held. */
static int setup(void **state)
{
	const struct stack_store_options stacks = {0};
	struct perf_data_writer *writer = make_recording();
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64];

	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, &stacks, NULL), 0);
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	say(REACH_HEAP, 0, NR_BLOCKS * APART, 0);
	return 0;
}

static int teardown(void **state)
{
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	return 0;
}

/* The blocks from @first on are held by @text, if they are held. */
static void name_holder(uint32_t first, const char *text)
{
	struct perf_sample sample = {.origin.pid = PID, .mark_number = first + 1};

	snprintf(sample.mark_text, sizeof(sample.mark_text), "%s", text);
	assert_int_equal(reach_add_holder(analysis.reach, &sample), 0);
	say(REACH_HELD, first, (NR_BLOCKS - first) * APART, first + 1);
}

static void make_report(void)
{
	static const struct leaks_options all = {0};

	assert_int_equal(leak_report_init(&report, &analysis, &all), 0);
}

static char *summary_text(void)
{
	const struct summary_report_style style = {0};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(summary_report_write(out, &report, &style), 0);
	fclose(out);
	return text;
}

static void assert_contains(const char *text, const char *expected)
{
	if (!strstr(text, expected))
		fail_msg("no \"%s\" in:\n%s", expected, text);
}

static void the_summary_explains_what_was_not_decided(void **state)
{
	_cleanup_free_ char *text = NULL;

	say(REACH_UNKNOWN, 3, BYTES, 0);
	make_report();
	text = summary_text();
	assert_contains(text, "\n  not decided: mostly allocated or lost between ");
	assert_contains(text, "\n  not scanned: newer than the scan, ");
}

static void the_summary_does_not_explain_what_there_is_not(void **state)
{
	_cleanup_free_ char *text = NULL;

	say(REACH_LOST, 3, BYTES, 0);
	make_report();
	text = summary_text();
	assert_contains(text, "Scanned: 1 block, 100 bytes, is proven lost: ");
	assert_null(strstr(text, "not decided: "));
}

/* In another format; the caller frees it. */
static char *format_text(const char *name, const struct tree_options *tree)
{
	struct held_history *history = held_history_create(NULL);
	const struct report_input input = {.report = &report, .tree = tree, .history = history};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(report_write(out, report_format_find(name), &input), 0);
	fclose(out);
	held_history_destroy(history);
	return text;
}

static char *leaks_text(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(leaks_write(out, &report), 0);
	fclose(out);
	return text;
}

/* leakscan's line is text, so the recording has the name with escapes: no report escapes those. */
static void a_hostile_name_is_escaped_once(void **state)
{
	static const char
		escaped[] = "e\\x0a<b>\"'\\x1b[2J\\x5c\u00e4\\xff (server)",
		json[] = "\"e\\n\\u003cb>\\\"'\\u001b[2J\\\\\u00e4\\ufffd (server)\"",
		in_page[] = "\"e\\\\x0a\\u003cb>\\\"'\\\\x1b[2J\\\\x5c\u00e4\\\\xff (server)\"";
	_cleanup_free_ char *summary = NULL, *leaks = NULL, *object = NULL, *page = NULL;
	_cleanup_free_ char *line = NULL, *row = NULL;

	name_holder(0, escaped);
	make_report();
	summary = summary_text();
	leaks = leaks_text();
	object = format_text("json", NULL);
	page = format_text("html", NULL);
	assert_true(asprintf(&row, "\n   held by %s\n", escaped) > 0);
	assert_true(asprintf(&line, "\nholder 1 %s\n", escaped) > 0);
	assert_contains(summary, row);
	assert_contains(leaks, line);
	assert_contains(object, json);
	assert_contains(page, in_page);
}

static void assert_tree(const struct tree_options *options, const char *expected)
{
	_cleanup_free_ char *text = format_text("tree", options);

	assert_string_equal(text, expected);
}

static void a_tree_names_the_holder_of_a_branch_once(void **state)
{
	struct tree_options options = {0};

	for (uint64_t i = 1; i < NR_SCANNED; i += 2)
		say(REACH_LOST, i, BYTES, 0);
	name_holder(0, "cache (server)");
	make_report();
	assert_tree(&options,
		    "        HELD      %    BLOCKS PROVEN LOST  FROM THE ALLOCATOR TO ITS CALLERS\n"
		    "    1.17 KiB  100.0        12   500 bytes  server+0x800  [server]\n"
		    "   600 bytes   50.0         6           -  +- server+0x1010\n"
		    "                                           |  server+0x101010\n"
		    "                                           |  (held by cache (server))\n"
		    "   600 bytes   50.0         6   500 bytes  `- server+0x2020\n"
		    "                                              server+0x101010\n"
		    "    1.17 KiB  100.0        12   500 bytes  total\n");
	options.main_first = true;
	assert_tree(&options,
		    "        HELD      %    BLOCKS PROVEN LOST  FROM main DOWN TO THE ALLOCATOR\n"
		    "    1.17 KiB  100.0        12   500 bytes  server+0x101010  [server]\n"
		    "   600 bytes   50.0         6           -  +- server+0x1010\n"
		    "                                           |  server+0x800\n"
		    "                                           |  (held by cache (server))\n"
		    "   600 bytes   50.0         6   500 bytes  `- server+0x2020\n"
		    "                                              server+0x800\n"
		    "    1.17 KiB  100.0        12   500 bytes  total\n");
}

static void a_tree_names_the_largest_of_several_holders(void **state)
{
	const struct tree_options options = {0};

	name_holder(0, "cache (server)");
	name_holder(7, "other (server)");
	make_report();
	assert_tree(
		&options,
		"        HELD      %    BLOCKS PROVEN LOST  FROM THE ALLOCATOR TO ITS CALLERS\n"
		"    1.17 KiB  100.0        12           -  server+0x800  [server]\n"
		"                                           (held by cache (server) and others)\n"
		"   600 bytes   50.0         6           -  +- server+0x1010\n"
		"                                           |  server+0x101010\n"
		"   600 bytes   50.0         6           -  `- server+0x2020\n"
		"                                              server+0x101010\n"
		"    1.17 KiB  100.0        12           -  total\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_summary_explains_what_was_not_decided, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_summary_does_not_explain_what_there_is_not,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_hostile_name_is_escaped_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_tree_names_the_holder_of_a_branch_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_tree_names_the_largest_of_several_holders, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
