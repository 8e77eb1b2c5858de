/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server under leakrec --budget: ten minutes, 20 ms of each four seconds. 76 times a second, at
 * random, it calls a function that allocates an object, which leaks, and a text, which is freed.
 * leakrec counts all of these calls.
 */
#include "common/scope.h"
#include "report/formats/formats.h"
#include "report/text/summary_report.h"
#include "test/support/perf_data_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MS	 UINT64_C(1000000)
#define S	 (1000 * MS)
#define PID	 7
#define LENGTH	 (600 * S)
#define EVERY	 (4 * S)
#define WINDOW	 (20 * MS)
#define RATE	 76.0
#define OBJECT	 0x4000
#define TEXT	 0x4040
#define FUNCTION 0x5000 /* a return address in it */
#define OTHER	 0x6000

/* How the samples of leakrec:calls are made. */
struct counter {
	pid_t pid;
	uint64_t address, since_ns;
	bool is_false; /* more calls were observed than were made */
};

static const struct counter right = {PID, FUNCTION, S, false};
static struct perf_data_writer *writer;
static int call, release, recording, window, look, calls;
static uint64_t all, observed;

static void add_of(pid_t pid, int event, uint64_t time_ns, uint64_t caller, const uint64_t *fields)
{
	const uint64_t chain[] = {0x9000, caller, FUNCTION, 0x8000};

	perf_data_sample(writer, &(struct perf_data_sample){.event = event,
							    .pid = pid,
							    .tid = pid,
							    .time_ns = time_ns,
							    .fields = fields,
							    .callchain = chain,
							    .nr_callchain = 4});
}

static void add(int event, uint64_t time_ns, uint64_t caller, const uint64_t *fields)
{
	add_of(PID, event, time_ns, caller, fields);
}

/* Looks at a block about 1, 2, 4, ... seconds after its window. */
static void follow(uint64_t address, uint64_t allocated_ns)
{
	enum look_state state = LOOK_TOUCHED;

	for (uint64_t wait_ns = S; allocated_ns + wait_ns < S + LENGTH; wait_ns *= 2) {
		add(look, allocated_ns + wait_ns, 0, (uint64_t[]){state, address, allocated_ns});
		state = LOOK_UNTOUCHED;
	}
}

static void call_in_window(uint64_t time_ns)
{
	uint64_t address = 0x100000 + 0x100 * observed++;

	add(call, time_ns, OBJECT, (uint64_t[]){0x9000, OBJECT, 48, address});
	add(call, time_ns + 1000, TEXT, (uint64_t[]){0x9000, TEXT, 32, 0x10000});
	add(release, time_ns + 2000, 0, (uint64_t[]){0x7100, 0x10000, 0x400020});
	follow(address, time_ns);
}

static void add_calls(const struct counter *counter, uint64_t time_ns)
{
	add_of(counter->pid, calls, time_ns, 0,
	       (uint64_t[]){1, counter->address, counter->since_ns, all,
			    counter->is_false ? all + 1 : observed, 2 * observed});
}

/* The distances of random calls: those of a Poisson process. */
static uint64_t next_ns(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint64_t)(-log((double)((*seed >> 11) + 1) / 9007199254740993.0) / RATE *
			  (double)S);
}

/* @counter NULL: leakrec counts no calls. */
static void make(const struct counter *counter)
{
	uint64_t begin = 0, end = 1, seed = 1, call_ns = S + next_ns(&seed);

	all = observed = 0;
	writer = perf_data_writer_create(NULL);
	call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	release = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	recording = perf_data_add_event(writer, "leakrec", "recording", "u32 end");
	window = perf_data_add_event(writer, "leakrec", "window", "u32 open");
	look = perf_data_add_event(writer, "leakrec", "look",
				   "u32 state\nu64 address\nu64 allocated");
	calls = perf_data_add_event(
		writer, "leakrec", "calls",
		"u32 number\nu64 address\nu64 since\nu64 all\nu64 observed\nu64 blocks");
	add(recording, S, 0, &begin);
	for (uint64_t open_ns = S + EVERY / 2; open_ns < S + LENGTH; open_ns += EVERY) {
		add(window, open_ns, 0, &end);
		for (; call_ns < open_ns + WINDOW; call_ns += next_ns(&seed)) {
			all += !counter || call_ns >= counter->since_ns;
			if (call_ns > open_ns)
				call_in_window(call_ns);
		}
		add(window, open_ns + WINDOW + MS, 0, &begin);
		if (counter)
			add_calls(counter, open_ns + WINDOW + 2 * MS);
	}
	for (; call_ns < S + LENGTH; call_ns += next_ns(&seed))
		all++;
	if (counter)
		add_calls(counter, S + LENGTH - 1);
	add(recording, S + LENGTH, 0, &end);
}

static struct analysis analysis;
static struct leak_report report;

/* Returns the verdict of the objects, which are the only leak. */
static const struct site_verdict *read_back(const struct counter *counter)
{
	static const struct leaks_options options = {0};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	const struct site_verdict *first;
	char path[64];

	make(counter);
	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, NULL, NULL), 0);
	assert_int_equal(analysis_read(&analysis, (const char *[]){path}, 1), 0);
	assert_int_equal(leak_report_init(&report, &analysis, &options), 0);
	first = &report.verdicts.causes[0].verdict;
	assert_int_equal(first->verdict, VERDICT_GROWTH);
	assert_true(first->has_rate);
	return first;
}

static int end_reading(void **state)
{
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	return 0;
}

static double error_of(const struct site_verdict *verdict)
{
	return verdict->rate.blocks_error / verdict->rate.blocks_per_s;
}

static void the_rate_is_that_of_the_calls(void **state)
{
	const struct site_verdict *first = read_back(&right);
	double truth = (double)all / 600;

	assert_true(first->counted_call != 0);
	assert_true(error_of(first) < 0.02);
	assert_true(fabs(first->rate.blocks_per_s / truth - 1) < 0.02);
	assert_true(fabs(first->rate.bytes_per_s / first->rate.blocks_per_s - 48) < 1e-6);
	assert_true(report.verdicts.sites[0].counted_call == first->counted_call);
}

static void the_sample_alone_tells_less(void **state)
{
	const struct site_verdict *first = read_back(NULL);

	assert_true(first->counted_call == 0);
	assert_true(error_of(first) > 0.06);
}

/* It began in the last quarter, or is of another process, another function, or made up. */
static void other_calls_tell_nothing(void **state)
{
	static const struct counter others[] = {
		{PID, FUNCTION, S + 3 * LENGTH / 4, false},
		{PID + 1, FUNCTION, S, false},
		{PID, OTHER, S, false},
		{PID, 1, S, false},
		{PID, FUNCTION | UINT64_C(1) << 63, S, false},
		{PID, FUNCTION, UINT64_MAX, false},
		{PID, FUNCTION, S, true},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct site_verdict *first = read_back(&others[i]);

		assert_true(first->counted_call == 0);
		assert_true(error_of(first) > 0.06);
		if (i + 1 < sizeof(others) / sizeof(others[0]))
			end_reading(NULL);
	}
}

static void counting_may_begin_later(void **state)
{
	static const struct counter later = {PID, FUNCTION, S + LENGTH / 4, false};
	const struct site_verdict *first = read_back(&later);

	assert_true(first->counted_call != 0);
	assert_true(fabs(first->rate.blocks_per_s / ((double)all / 450) - 1) < 0.02);
}

static void reports_say_it(void **state)
{
	const struct summary_report_style style = {0};
	_cleanup_free_ char *text = NULL, *json = NULL;
	struct report_input input = {.report = &report};
	size_t size;
	FILE *out = open_memstream(&text, &size), *lines = open_memstream(&json, &size);

	read_back(&right);
	assert_int_equal(summary_report_write(out, &report, &style), 0);
	assert_int_equal(json_format.write(lines, &input), 0);
	fclose(out);
	fclose(lines);
	/* Nothing is mapped there, so that it has no name. */
	if (!strstr(text, "; all calls of a function counted\n"))
		fail_msg("%s", text);
	assert_non_null(strstr(json, ",\"counted\":true},"));
}

#define TEST(function) cmocka_unit_test_teardown(function, end_reading)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_rate_is_that_of_the_calls),
		TEST(the_sample_alone_tells_less),
		TEST(other_calls_tell_nothing),
		TEST(counting_may_begin_later),
		TEST(reports_say_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
