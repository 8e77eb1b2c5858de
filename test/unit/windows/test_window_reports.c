/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server under leakrec --budget: ten minutes, 20 ms of each second. One of a thousand requests
 * leaks an object. A cache keeps its entries for a minute, a table stays. Texts are freed at once;
 * one is in use when a window closes, and something else stays at its address. In every second
 * window the call that returns it lasts longer than the window. One of three sessions ends at once,
 * the others last five seconds; leakrec looks at one of four of these. With an argument, it only
 * writes the recording to that file, for tests of leakparse.
 */
#include "common/scope.h"
#include "report/formats/formats.h"
#include "report/formats/held_history.h"
#include "report/html/html_columns.h"
#include "report/html/html_format.h"
#include "report/text/leak_words.h"
#include "report/text/leaks_writer.h"
#include "report/text/summary_report.h"
#include "test/support/perf_data_writer.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS	   UINT64_C(1000000)
#define S	   (1000 * MS)
#define PID	   7
#define WINDOWS	   UINT64_C(600)
#define REQUESTS   UINT64_C(200) /* in a window */
#define LEAK	   0x4000
#define CACHE	   0x5000
#define TABLE	   0x6000
#define TEXT	   0x7000
#define START	   0x8000
#define SESSION	   0xa000
#define STARTED	   40		/* blocks, in the first window */
#define TEXTS	   UINT64_C(50) /* in a window */
#define CACHE_LIFE (60 * S)

static struct perf_data_writer *writer;
static int call, release, recording, window, look, memory;

static void add(int event, uint64_t time_ns, uint64_t caller, const uint64_t *fields)
{
	const uint64_t chain[] = {0x9000, caller};

	perf_data_sample(writer, &(struct perf_data_sample){.event = event,
							    .pid = PID,
							    .tid = PID,
							    .time_ns = time_ns,
							    .fields = fields,
							    .callchain = chain,
							    .nr_callchain = 2});
}

static void allocate(uint64_t time_ns, uint64_t caller, uint64_t size_bytes, uint64_t address)
{
	add(call, time_ns, caller, (uint64_t[]){0x9000, caller, size_bytes, address});
}

static void look_at(uint64_t time_ns, uint64_t address, uint64_t allocated_ns,
		    enum look_state state)
{
	add(look, time_ns, 0, (uint64_t[]){state, address, allocated_ns});
}

/* Looks at a block about 1, 2, 4, ... seconds after its window, until it is gone. */
static void follow(uint64_t address, uint64_t allocated_ns, uint64_t freed_ns)
{
	uint64_t end_ns = S + WINDOWS * S;
	enum look_state state = LOOK_TOUCHED;

	for (uint64_t wait_ns = S, at_ns = 0; at_ns < end_ns; wait_ns *= 2) {
		at_ns = allocated_ns + wait_ns < end_ns ? allocated_ns + wait_ns : end_ns;
		if (at_ns >= freed_ns)
			state = LOOK_GONE;
		look_at(at_ns, address, allocated_ns, state);
		if (state == LOOK_GONE)
			return;
		state = LOOK_UNTOUCHED;
	}
}

/* The requests of a window: each takes 50 us, the last one goes on when it closes. */
static void add_requests(uint64_t open_ns, uint64_t *nr)
{
	for (uint64_t i = 0; i < REQUESTS; i++) {
		uint64_t at_ns = open_ns + i * 100000, address = 0x100000 + 0x100 * (*nr)++;
		bool leaks = *nr % 1000 == 500;

		allocate(at_ns, LEAK, 48, address);
		if (leaks)
			follow(address, at_ns, UINT64_MAX);
		else if (i + 1 < REQUESTS)
			add(release, at_ns + 50000, 0, (uint64_t[]){0x7100, address, 0x400020});
		else
			follow(address, at_ns, at_ns + 50000);
	}
}

static void add_texts(uint64_t open_ns, uint64_t number)
{
	uint64_t address = 0x40000000 + 0x100 * number;

	for (uint64_t i = 0; i < TEXTS; i++) {
		uint64_t at_ns = open_ns + 20 * MS - 2000 - (TEXTS - 1 - i) * 300000;

		if (i + 1 == TEXTS && number % 2)
			at_ns = open_ns + 20 * MS;
		allocate(at_ns, TEXT, 32, address);
		if (i + 1 < TEXTS)
			add(release, at_ns + 3000, 0, (uint64_t[]){0x7100, address, 0x400020});
		else
			follow(address, at_ns, UINT64_MAX);
	}
}

static void add_sessions(uint64_t open_ns, uint64_t number)
{
	uint64_t address = 0x50000000 + 0x1000 * number;

	for (uint64_t i = 0; i < 3; i++)
		allocate(open_ns + i * MS, SESSION, 32, address + 0x100 * i);
	add(release, open_ns + 3 * MS, 0, (uint64_t[]){0x7100, address, 0x400020});
	if (number % 2)
		follow(address + 0x100, open_ns + MS, open_ns + MS + 5 * S);
}

static void make(void)
{
	uint64_t nr = 0, begin = 0, end = 1;

	writer = perf_data_writer_create(NULL);
	call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	release = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	recording = perf_data_add_event(writer, "leakrec", "recording", "u32 end");
	window = perf_data_add_event(writer, "leakrec", "window", "u32 open");
	look = perf_data_add_event(writer, "leakrec", "look",
				   "u32 state\nu64 address\nu64 allocated");
	memory =
		perf_data_add_event(writer, "leakrec", "memory",
				    "u32 turn\nu64 anon\nu64 file\nu64 shared\nu64 swap\nu64 data");
	add(recording, S, 0, &begin);
	add(memory, S + 1, 0, (uint64_t[]){1, 0, 0, 0, 0, 0});
	for (uint64_t i = 0; i < WINDOWS; i++) {
		uint64_t open_ns = S + i * S + 300 * MS, cached = 0x10000000 + 0x1000 * i;

		add(window, open_ns, 0, &end);
		add_requests(open_ns + 1, &nr);
		add_texts(open_ns, i);
		add_sessions(open_ns + MS, i);
		allocate(open_ns + MS, CACHE, 4096, cached);
		follow(cached, open_ns + MS, open_ns + MS + CACHE_LIFE + i % 7 * S);
		for (uint64_t k = 0; i == 0 && k < STARTED; k++) {
			allocate(open_ns + MS + k, START, 77, 0x30000000 + 0x100 * k);
			follow(0x30000000 + 0x100 * k, open_ns + MS + k, UINT64_MAX);
		}
		if (i < 20) {
			allocate(open_ns + MS, TABLE, 100000, 0x20000000 + 0x100000 * i);
			follow(0x20000000 + 0x100000 * i, open_ns + MS, UINT64_MAX);
		}
		add(window, open_ns + 20 * MS, 0, &begin);
	}
	add(memory, S + WINDOWS * S - 1, 0, (uint64_t[]){2, 300 << 20, 0, 0, 0, 300 << 20});
	add(recording, S + WINDOWS * S, 0, &end);
}

static int write_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err;

	make();
	err = fd < 0 ? -1 : perf_data_write(writer, PERF_DATA_FILE, fd);
	perf_data_writer_destroy(writer);
	if (fd >= 0)
		close(fd);
	return err ? 1 : 0;
}

static const struct leaks_options all = {0};

static void read_back(struct analysis *analysis, struct leak_report *report)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64];

	make();
	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(analysis, NULL, NULL), 0);
	assert_int_equal(analysis_read(analysis, (const char *[]){path}, 1), 0);
	assert_int_equal(leak_report_init(report, analysis, &all), 0);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in\n%s", part, text);
}

static void finds_the_leak(void **state)
{
	struct analysis analysis;
	struct leak_report report;
	const struct site_verdict *first;
	const struct leak_cause *cause;

	read_back(&analysis, &report);
	assert_true(report.in_windows);
	assert_true(fabs(analysis_observed_share(&analysis) - 0.02) < 1e-3);
	cause = &report.causes[0];
	first = &report.verdicts.causes[cause->cause].verdict;
	assert_int_equal(first->verdict, VERDICT_GROWTH);
	assert_int_equal(first->site->allocations, WINDOWS * REQUESTS);
	/* One of a thousand of the 10,000 requests in a second of windows. */
	assert_true(fabs(first->rate.blocks_per_s - 10) < 1);
	/* 6,000 objects in ten minutes. */
	assert_true(fabs(cause->estimate.blocks - 6000) < 600);
	assert_true(cause->estimate.blocks_variance > 100 * 100);
	assert_true(fabs(first->stays - 0.001) < 2e-4);
	/* One text at a time, not one for all of the time between two windows. */
	assert_true(report.estimate.blocks < 6000 + 1000 + 3200 + 2000 + 500 + 1000);
	/* The median is that of all, not of those that outlived a window. */
	assert_true(first->median_s < 1e-4);
	for (size_t i = 1; i < report.nr_causes; i++) {
		enum verdict verdict =
			report.verdicts.causes[report.causes[i].cause].verdict.verdict;

		assert_true(verdict == VERDICT_NOT_YET || verdict == VERDICT_STARTUP);
	}
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* What only one window has seen may have been there once, or nearly always between windows. */
static void errors_are_those_of_windows(void **state)
{
	struct analysis analysis;
	struct leak_report report;
	const struct leak_cause *start = NULL;
	double error;

	read_back(&analysis, &report);
	for (size_t i = 0; i < report.nr_causes; i++)
		if (report.causes[i].bytes == STARTED * UINT64_C(77))
			start = &report.causes[i];
	assert_non_null(start);
	if (!start)
		return;
	assert_true(fabs(start->estimate.blocks - STARTED / 0.02) < 200);
	error = sqrt(start->estimate.blocks_variance);
	assert_true(fabs(error / start->estimate.blocks - 1) < 0.05);
	assert_true(fabs(sqrt(start->estimate.bytes_variance) / error / 77 - 1) < 0.01);
	assert_true(report.estimate.blocks_variance > start->estimate.blocks_variance);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* One text at a time: 600 windows tell that much better than to a block. */
static void no_error_is_zero(void **state)
{
	_cleanup_free_ char *text = NULL;
	const struct leak_cause *texts = NULL;
	struct analysis analysis;
	struct leak_report report;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	read_back(&analysis, &report);
	for (size_t i = 0; i < report.nr_causes; i++)
		if (report.causes[i].bytes == WINDOWS * UINT64_C(32))
			texts = &report.causes[i];
	assert_non_null(texts);
	if (!texts)
		return;
	assert_true(texts->estimate.blocks_variance > 0);
	leak_words_estimate(out, NULL, &texts->estimate);
	assert_int_equal(leaks_write(out, &report), 0);
	fclose(out);
	assert_int_equal(strncmp(text, "about 1 block, 32 bytes#", 24), 0);
	assert_lacks(text, "_error=0 ");
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

static void says_that_it_estimates(void **state)
{
	const struct summary_report_style style = {0};
	_cleanup_free_ char *text = NULL;
	struct analysis analysis;
	struct leak_report report;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	read_back(&analysis, &report);
	assert_int_equal(summary_report_write(out, &report, &style), 0);
	fclose(out);
	assert_has(text, "10.0 min recorded in 600 windows, 2 % of the time, ");
	assert_has(text, "Estimated from a sample of ");
	assert_has(text, "\nIf the program is slower while it is observed, ");
	assert_has(text, "1. growth: about 6000 +-500 blocks");
	assert_has(text, " stay; of the others half freed within ");
	assert_lacks(text, "certain");
	assert_lacks(text, " events were lost");
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

static void lists_the_sample(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct analysis analysis;
	struct leak_report report;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	read_back(&analysis, &report);
	assert_int_equal(leaks_write(out, &report), 0);
	fclose(out);
	assert_has(text, " windows=600 observed=0.02 estimated_blocks=");
	assert_has(text, "\nstack 1 growth doubtful:unobserved 120 5760 ");
	assert_has(text, " estimated_blocks_error=");
	assert_has(text, " stays=0.00");
	assert_lacks(text, "\nhistory ");
	assert_lacks(text, "\nperiods ");
	assert_lacks(text, " peak_blocks=");
	assert_lacks(text, "\nunexpected ");
	assert_lacks(text, "\n# lost");
	assert_lacks(text, "\n# audit");
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

static void writes_json(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct analysis analysis;
	struct leak_report report;
	struct report_input input = {.report = &report};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	read_back(&analysis, &report);
	assert_int_equal(json_format.write(out, &input), 0);
	fclose(out);
	assert_has(text, "\"windows\":{\"opened\":600,\"observed\":0.02,\"estimated_blocks\":");
	assert_has(text, "\"estimated_bytes_error\":");
	assert_has(text, "\"stays\":0.00");
	assert_lacks(text, "\"peak_blocks\"");
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* What only a full observation would tell: peaks, histories, and where the memory went. */
static void leaves_out_what_is_not_known(void **state)
{
	_cleanup_free_ char *page = NULL, *csv = NULL;
	struct held_history *history = held_history_create(NULL);
	struct analysis analysis;
	struct leak_report report;
	struct report_input input = {.report = &report, .history = history};
	size_t size;
	FILE *out = open_memstream(&page, &size), *lines = open_memstream(&csv, &size);

	read_back(&analysis, &report);
	assert_int_equal(html_format.write(out, &input), 0);
	assert_int_equal(csv_format.write(lines, &input), 0);
	fclose(out);
	fclose(lines);
	assert_has(page, "\"memory\":\"\",");
	assert_lacks(page, "\"peak");
	assert_lacks(page, "\"histories\":");
	assert_lacks(page, "\"held\":{");
	assert_lacks(page, "\"firm_blocks\":");
	/* The leak: 24,000 allocations seen, of which 120 are held. */
	assert_has(csv, "\r\n1,growth,\"doubtful:unobserved\",120,5760,0,120000,");
	assert_has(csv, ",5760000,,,");
	held_history_destroy(history);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* The tiles have the amounts of the summary, which are estimates, and not those of the sample. */
static void the_page_has_the_amounts_of_the_summary(void **state)
{
	struct held_history *history = held_history_create(NULL);
	const struct summary_report_style style = {0};
	_cleanup_free_ char *page = NULL, *summary = NULL;
	struct analysis analysis;
	struct leak_report report;
	struct report_input input = {.report = &report, .history = history};
	size_t size;
	FILE *out = open_memstream(&page, &size), *screen = open_memstream(&summary, &size);

	read_back(&analysis, &report);
	assert_int_equal(html_format.write(out, &input), 0);
	assert_int_equal(summary_report_write(screen, &report, &style), 0);
	fclose(out);
	fclose(screen);
	assert_has(summary, " 2.18 MiB: about 12800 +-2200 blocks, 108 MiB in 6 stacks, ");
	assert_has(page, "\"held\":\"108 MiB\",\"leaked\":\"281 KiB\",");
	assert_has(page, "\"estimated\":\"about 12800 +-2200 blocks\",");
	assert_has(summary, " 6000 blocks    281 KiB  keep accumulating\n");
	assert_has(page, ",\"281 KiB\"],[0,\"0 bytes\"],");
	assert_has(summary, "\nIf the program is slower while it is observed, ");
	assert_has(page, "\"If the program is slower while it is observed, ");
	held_history_destroy(history);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* Returns the number of row @row in column @name of the page's sites. */
static long long number_in(const char *page, const char *name, size_t row)
{
	const char *place = strstr(page, "\"sites\":{");

	assert_non_null(place);
	place = strstr(place, name);
	assert_non_null(place);
	place += strlen(name);
	assert_int_equal(*place, '[');
	for (; row; row--) {
		place = strchr(place + 1, ',');
		assert_non_null(place);
	}
	return strtoll(place + 1, NULL, 10);
}

/* Of the sessions, most of the ends that were seen came at once. */
static void the_page_has_the_lifetimes_of_the_verdicts(void **state)
{
	_cleanup_free_ char *page = NULL;
	struct analysis analysis;
	struct leak_report report;
	struct html_tables tables;
	size_t size;
	FILE *out = open_memstream(&page, &size);

	read_back(&analysis, &report);
	assert_int_equal(html_tables_init(&tables, &report), 0);
	html_columns_write(out, &tables);
	html_tables_deinit(&tables);
	fclose(out);
	assert_int_equal(report.nr_listed_sites, 6);
	for (size_t i = 0; i < report.nr_listed_sites; i++) {
		const struct site_verdict *verdict = &report.verdicts.sites[report.sites[i].site];
		double median = verdict->median_s * 1e6, p99 = verdict->p99_s * 1e6;

		assert_true(fabs((double)number_in(page, "\"median_us\":", i) -
				 (median < 0 ? -1 : median)) <= 1);
		assert_true(fabs((double)number_in(page, "\"p99_us\":", i) -
				 (p99 < 0 ? -1 : p99)) <= 1);
	}
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_leak),
		cmocka_unit_test(errors_are_those_of_windows),
		cmocka_unit_test(no_error_is_zero),
		cmocka_unit_test(says_that_it_estimates),
		cmocka_unit_test(lists_the_sample),
		cmocka_unit_test(writes_json),
		cmocka_unit_test(leaves_out_what_is_not_known),
		cmocka_unit_test(the_page_has_the_amounts_of_the_summary),
		cmocka_unit_test(the_page_has_the_lifetimes_of_the_verdicts),
	};

	return argc > 1 ? write_to(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
