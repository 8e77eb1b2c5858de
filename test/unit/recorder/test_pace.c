/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a program works in windows: simulated programs. */
#include "recorder/windows/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MS	  1000000ULL
#define WINDOW_NS (5 * MS)
#define GAP_NS	  (500 * MS)
#define SAMPLE_NS (20 * MS)

/* A program, and what probes do to it. */
struct program {
	double cpus;	    /* that it uses, with hits in windows */
	double useful_cpus; /* that it uses in windows, without hits */
	double calls_per_s; /* between windows */
	double call_pace;   /* of these calls in windows */
	double cost;	    /* what hits cost, by what was measured */
	double idle_cpus;   /* of which it does not use so much between windows */
	double cpu_part;    /* that a busy thread gets */
	uint64_t window_ns; /* 0: WINDOW_NS */
};

static double ratio_of(const struct program *program, unsigned int nr_windows)
{
	uint64_t window_ns = program->window_ns ? program->window_ns : WINDOW_NS;
	struct pace pace = {0};
	struct pace_sample sample;
	struct pace_meter at = {.now_ns = 1000 * MS, .cpu_ns = 77 * MS};

	for (unsigned int i = 0; i < nr_windows; i++) {
		struct pace_meter from = at;

		at.now_ns += GAP_NS;
		at.thread_ns = (uint64_t)((double)at.now_ns * program->cpu_part);
		at.cpu_ns += (uint64_t)((program->cpus - program->idle_cpus) * (double)GAP_NS);
		sample.ns = SAMPLE_NS;
		sample.transfers = (uint64_t)(program->calls_per_s * (double)SAMPLE_NS / 1e9);
		pace_add_gap(&pace, &from, &at, &sample);
		from = at;
		/* The recorder comes late: the window has closed after half of the hits. */
		at.now_ns += 2 * window_ns;
		at.thread_ns = (uint64_t)((double)at.now_ns * program->cpu_part);
		at.cpu_ns += (uint64_t)(program->cpus * 2 * (double)window_ns);
		at.hits_ns += (uint64_t)((program->cpus - program->useful_cpus) * 2 *
					 (double)window_ns / program->cost);
		sample.ns = 2 * window_ns;
		sample.transfers = (uint64_t)(program->calls_per_s * program->call_pace * 2 *
					      (double)window_ns / 1e9);
		pace_add_window(&pace, &from, &at, &sample, 0.5, window_ns);
	}
	return pace_ratio(&pace);
}

static void assert_near(double value, double expected)
{
	if (value < expected * 0.85 || value > expected * 1.15)
		fail_msg("%g instead of %g", value, expected);
}

/* By the CPU time alone. A hit may also cost a little less than was measured, or more. */
static void assert_near_by_cpu(double value, double expected)
{
	if (value < expected * 0.9 || value > expected * 1.8)
		fail_msg("%g instead of %g", value, expected);
}

/* Nearly all CPU time goes into hits: what is left of it by the estimate is of no use. */
static void test_saturated_server(void **state)
{
	/* Others disturbed the measurement of the last ones. */
	static const double costs[] = {1.2, 1, 0.8, 0.7, 0.6, 0.55};

	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		const struct program program = {1.2, 0.1, 40000, 1.0 / 12, costs[i], 0, 1, 0};

		assert_near(ratio_of(&program, 30), 1.0 / 12);
	}
}

/* It waits for a timer. The probes cost CPU time that it has. */
static void test_program_that_waits(void **state)
{
	const struct program with_io = {.cpus = 0.3,
					.useful_cpus = 0.3,
					.calls_per_s = 2000,
					.call_pace = 1,
					.cost = 1,
					.cpu_part = 1};
	struct program without_io = with_io;

	without_io.calls_per_s = 0;
	assert_near(ratio_of(&with_io, 30), 1);
	assert_near(ratio_of(&without_io, 30), 1);
	/* Most of its time in windows goes into hits, which cost more than was measured. */
	without_io.useful_cpus = 0.05;
	without_io.idle_cpus = 0.25;
	without_io.cost = 1.4;
	assert_near(ratio_of(&without_io, 30), 1);
	/* It really has more to do there. */
	without_io.useful_cpus = 0.3;
	assert_near(ratio_of(&without_io, 30), 2);
}

/* Hits cost less than was measured: by that, they would take more than all CPU time. */
static void test_hits_that_cost_little(void **state)
{
	struct program program = {.cpus = 0.15,
				  .useful_cpus = 0.03,
				  .idle_cpus = 0.12,
				  .cost = 0.6,
				  .cpu_part = 1,
				  .window_ns = 50 * MS};
	double pace = ratio_of(&program, 30);

	/* 0.88, but a CPU time may be wrong by 4 ms. */
	assert_true(pace > 0.6 && pace <= 0.88);
	/* It waits for a CPU, not for a timer. */
	program.cpu_part = 0.15;
	program.idle_cpus = 0;
	assert_true(ratio_of(&program, 30) < 0.05);
	/* Half of its work is hits, and it waits as long as that takes. */
	program.cpus = 0.6;
	program.useful_cpus = 0.3;
	program.idle_cpus = 0.2;
	program.cpu_part = 1;
	pace = ratio_of(&program, 30);
	assert_true(pace > 0.3 && pace <= 0.67);
}

static void test_program_without_io(void **state)
{
	const struct program program = {2, 0.8, 0, 1, 1.1, 0, 1, 0};

	assert_near(ratio_of(&program, 30), 0.4);
}

/* A thread reads at the pace of a timer; others compute and allocate, and are slowed down. */
static void test_io_that_is_not_the_work(void **state)
{
	const struct program program = {2, 0.6, 1000, 1, 1, 0, 1, 0};

	/* Of the CPU time in windows, 0.7 are hits, or at least 0.5. */
	assert_true(ratio_of(&program, 30) < 0.55);
}

static void test_knows_nothing_at_first(void **state)
{
	const struct program idle = {0};

	assert_true(ratio_of(&idle, 0) == 0);
	assert_true(ratio_of(&idle, 5) == 0);
}

/* Adds @ns in which the program uses a CPU, or none, and does so much with each of these. */
static void pass(struct pace_meter *at, uint64_t ns, double cpus, double useful_part)
{
	at->now_ns += ns;
	at->thread_ns += ns;
	at->cpu_ns += (uint64_t)((double)ns * cpus);
	at->hits_ns += (uint64_t)((double)ns * cpus * (1 - useful_part));
}

/* It waits until it gets requests, in the first window or after it. */
static void assert_begins_idle(bool in_window, bool has_transfers)
{
	struct pace pace = {0};
	struct pace_meter from = {0}, at = {0};
	const struct pace_sample none = {SAMPLE_NS, 0};
	const struct pace_sample fast = {SAMPLE_NS, has_transfers ? 1000 : 0};
	const struct pace_sample slow = {WINDOW_NS, fast.transfers / 40};

	pass(&at, 3 * GAP_NS, 0, 1);
	pace_add_gap(&pace, &from, &at, &none);
	from = at;
	pass(&at, 60000 * MS, 0, 1);
	pass(&at, WINDOW_NS, in_window, 0.1);
	pace_add_window(&pace, &from, &at, &none, 1, at.now_ns - from.now_ns);
	assert_true(pace_ratio(&pace) == 0);
	for (unsigned int i = 0; i < 3; i++) {
		from = at;
		pass(&at, GAP_NS, 1, 1);
		pace_add_gap(&pace, &from, &at, &fast);
		from = at;
		pass(&at, WINDOW_NS, 1, 0.1);
		pace_add_window(&pace, &from, &at, &slow, 1, WINDOW_NS);
		assert_near_by_cpu(pace_ratio(&pace), 0.1);
	}
}

static void test_program_that_is_idle_at_first(void **state)
{
	for (int i = 0; i < 4; i++)
		assert_begins_idle(i & 1, i & 2);
}

/* It is idle again for a while: the window stays open until it works. */
static void assert_pauses(bool has_transfers)
{
	struct pace pace = {0};
	struct pace_meter from, at = {0};
	const struct pace_sample fast = {SAMPLE_NS, has_transfers ? 1000 : 0};
	const struct pace_sample slow = {WINDOW_NS, fast.transfers / 40};

	for (unsigned int i = 0; i < 20; i++) {
		from = at;
		pass(&at, GAP_NS, 1, 1);
		pace_add_gap(&pace, &from, &at, &fast);
		from = at;
		if (i == 4)
			pass(&at, 60000 * MS, 0, 1);
		pass(&at, WINDOW_NS, 1, 0.1);
		pace_add_window(&pace, &from, &at, &slow, 1, at.now_ns - from.now_ns);
	}
	assert_near_by_cpu(pace_ratio(&pace), 0.1);
}

static void test_program_that_pauses(void **state)
{
	assert_pauses(true);
	assert_pauses(false);
}

/* One closes as soon as it has opened: what is known from the others still holds. */
static void test_short_window(void **state)
{
	for (uint64_t short_ns = 1000; short_ns <= MS; short_ns *= 10) {
		const struct pace_sample none = {0};
		struct pace pace = {0};
		struct pace_meter from, at = {0};

		for (unsigned int i = 0; i < 21; i++) {
			uint64_t window_ns = i < 20 ? WINDOW_NS : short_ns;

			from = at;
			pass(&at, GAP_NS, 1, 1);
			pace_add_gap(&pace, &from, &at, &none);
			from = at;
			pass(&at, window_ns, 1, 0.1);
			pace_add_window(&pace, &from, &at, &none, 1, window_ns);
		}
		assert_near_by_cpu(pace_ratio(&pace), 0.1);
	}
}

/* It works for a while, then waits for as long. Each window meets one or the other. */
static void test_bursts(void **state)
{
	const struct pace_sample none = {SAMPLE_NS, 0};
	struct pace pace = {0};
	struct pace_meter from, at = {0};

	for (unsigned int i = 0; i < 20; i++) {
		from = at;
		pass(&at, GAP_NS, 0.5, 1);
		pace_add_gap(&pace, &from, &at, &none);
		from = at;
		pass(&at, WINDOW_NS, i % 2, 0.1);
		pace_add_window(&pace, &from, &at, &none, 1, WINDOW_NS);
	}
	assert_near_by_cpu(pace_ratio(&pace), 0.1);
}

/* A window that lasts nearly all the time has nearly the mean pace, whatever came before it. */
static void test_long_window(void **state)
{
	const struct pace_meter start = {0}, begun = {100 * MS, 100 * MS, 90 * MS, 0};
	const struct pace_meter end = {100100 * MS, 100100 * MS, 1090 * MS, 0};
	const struct pace_sample none = {0};
	struct pace pace = {0};

	pace_add_gap(&pace, &start, &begun, &none);
	pace_add_window(&pace, &begun, &end, &none, 1, end.now_ns - begun.now_ns);
	assert_true(pace_ratio(&pace) > 0.9 && pace_ratio(&pace) <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saturated_server),
		cmocka_unit_test(test_program_that_waits),
		cmocka_unit_test(test_hits_that_cost_little),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_program_without_io),
		cmocka_unit_test(test_io_that_is_not_the_work),
		cmocka_unit_test(test_knows_nothing_at_first),
		cmocka_unit_test(test_program_that_is_idle_at_first),
		cmocka_unit_test(test_program_that_pauses),
		cmocka_unit_test(test_short_window),
		cmocka_unit_test(test_long_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
