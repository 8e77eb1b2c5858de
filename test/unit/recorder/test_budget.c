/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a recording that keeps to a budget observes: simulated programs. */
#include "common/scope.h"
#include "recorder/windows/windows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MS	  1000000.0
#define SECOND_NS 1000000000ULL

/* A program, and what recording it costs. */
struct simulation {
	double threads;		    /* busy ones, of their own work */
	double hits_ns;		    /* the cost of hits in 1 ns while the probes stand */
	double own_ns;		    /* ours, while a window is open */
	double place_ms, remove_ms; /* how long placing and removing the probes takes */
	double helpers_ns;	    /* what either takes of our CPU time */
	double report_ns;	    /* ours for a live report, each second */
	double ask_ns;		    /* what asking costs between windows */
	double thread_part;	    /* of a CPU that a busy thread gets; 0: all of it */
	uint64_t busy_from_ns;	    /* before that, nothing is hit */
	uint64_t fork_each_ns;	    /* a child each such time; 0: never */
	uint64_t child_ns;	    /* so long it lives */
	uint64_t round_ns;	    /* while a window is open, it asks so often; 0: each 100 ms */
	struct budget_meter now;
	struct budget budget;
	uint64_t shut_ns, begun_ns;
	uint64_t slow_ns; /* while probes stand */
	uint64_t nr_windows, min_gap_ns, max_gap_ns, nr_asked_shut;
	uint64_t first_ns, second_ns; /* how long the first two windows lasted */
	uint64_t nr_short, nr_long;   /* windows of up to 10 ms, and from 80 ms on */
	double min_credit_ns;
};

static void pass(struct simulation *sim, double ns, bool probes_stand)
{
	bool is_busy = sim->now.now_ns >= sim->busy_from_ns;
	bool is_hit = probes_stand && is_busy;

	sim->now.now_ns += (uint64_t)ns;
	sim->now.thread_ns += (uint64_t)(ns * (sim->thread_part ? sim->thread_part : 1));
	sim->now.targets_ns += (uint64_t)(ns * (is_busy ? sim->threads : 0));
	sim->now.hits_ns += (uint64_t)(is_hit ? ns * sim->hits_ns : 0);
	sim->now.own_ns += (uint64_t)(is_hit ? ns * sim->own_ns : 0);
	if (sim->now.now_ns / SECOND_NS > (sim->now.now_ns - (uint64_t)ns) / SECOND_NS)
		sim->now.own_ns += (uint64_t)sim->report_ns;
	budget_update(&sim->budget, &sim->now);
	if (sim->budget.credit_ns < sim->min_credit_ns)
		sim->min_credit_ns = sim->budget.credit_ns;
}

static void open_window(struct simulation *sim)
{
	uint64_t gap_ns = sim->now.now_ns - sim->shut_ns;

	if (sim->nr_windows++) {
		sim->min_gap_ns = gap_ns < sim->min_gap_ns ? gap_ns : sim->min_gap_ns;
		sim->max_gap_ns = gap_ns > sim->max_gap_ns ? gap_ns : sim->max_gap_ns;
	}
	sim->begun_ns = sim->now.now_ns;
	budget_begin(&sim->budget);
	sim->now.helpers_ns += (uint64_t)sim->helpers_ns;
	pass(sim, sim->place_ms * MS, true);
	budget_note_open(&sim->budget, sim->now.now_ns);
}

static void close_window(struct simulation *sim)
{
	uint64_t open_ns = sim->now.now_ns - sim->budget.opened.now_ns;

	budget_note_closing(&sim->budget, sim->now.now_ns);
	sim->nr_short += open_ns <= 10 * MS;
	sim->nr_long += open_ns >= 80 * MS;
	if (sim->budget.nr_windows == 1)
		sim->first_ns = open_ns;
	if (sim->budget.nr_windows == 2)
		sim->second_ns = open_ns;
	sim->now.helpers_ns += (uint64_t)sim->helpers_ns;
	pass(sim, sim->remove_ms * MS, true);
	budget_note_shut(&sim->budget);
	sim->shut_ns = sim->now.now_ns;
	sim->slow_ns += sim->shut_ns - sim->begun_ns;
}

/* A child lives that was forked since the window was opened. */
static bool has_new(const struct simulation *sim)
{
	uint64_t now_ns = sim->now.now_ns;
	uint64_t forked_ns = sim->fork_each_ns ? now_ns - now_ns % sim->fork_each_ns : 0;

	return forked_ns > sim->budget.opened.now_ns && now_ns < forked_ns + sim->child_ns;
}

/* Steps through @seconds, as windows.c does: it asks when it is told to, or each round. */
static void simulate(struct simulation *sim, double share, double seconds)
{
	double round_ns = sim->round_ns ? (double)sim->round_ns : 100 * MS;
	uint64_t end_ns;

	sim->now = (struct budget_meter){.now_ns = SECOND_NS};
	sim->min_gap_ns = UINT64_MAX;
	budget_init(&sim->budget, share, 12345, &sim->now);
	end_ns = sim->now.now_ns + (uint64_t)(seconds * 1e9);
	open_window(sim);
	while (sim->now.now_ns < end_ns) {
		uint64_t next_ns = budget_next_ns(&sim->budget);
		double ns = (double)(next_ns - sim->now.now_ns);
		bool is_open = sim->budget.state == BUDGET_OPEN;

		ns = is_open && ns > round_ns ? round_ns : ns;
		assert_true(next_ns > sim->now.now_ns);
		sim->nr_asked_shut += sim->budget.state == BUDGET_SHUT;
		sim->now.own_ns += (uint64_t)(is_open ? 0 : sim->ask_ns);
		/* A program closes the window when hits have cost as much as they may. */
		if (is_open && sim->now.now_ns >= sim->busy_from_ns &&
		    ns * sim->hits_ns > budget_allowance_ns(&sim->budget)) {
			pass(sim, budget_allowance_ns(&sim->budget) / sim->hits_ns, true);
			close_window(sim);
			continue;
		}
		pass(sim, ns, is_open);
		budget_note_new(&sim->budget, has_new(sim));
		if (budget_wants_close(&sim->budget))
			close_window(sim);
		else if (budget_wants_open(&sim->budget))
			open_window(sim);
	}
}

static double observed(const struct simulation *sim)
{
	return budget_observed(&sim->budget, sim->now.now_ns);
}

/* The part of the time in which it is slow. */
static double slow(const struct simulation *sim)
{
	return (double)sim->slow_ns / (double)(sim->now.now_ns - sim->budget.first.now_ns);
}

static const struct simulation server = {
	.threads = 2,
	.hits_ns = 1.4,
	.own_ns = 0.3,
	.place_ms = 9,
	.remove_ms = 20,
	.helpers_ns = 2e6,
};

static void test_busy_program_keeps_to_its_budget(void **state)
{
	static const double shares[] = {0.005, 0.02, 0.1, 0.3};

	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		struct simulation sim = server;

		simulate(&sim, shares[i], 3000);
		assert_true(budget_used(&sim.budget) <= shares[i] * 1.02);
		assert_true(sim.nr_windows > 15);
		/* No rest is longer than three minutes. */
		assert_true(shares[i] < 0.01 ||
			    slow(&sim) <= shares[i] * (1 + 7 * shares[i]) / 8 * 1.3);
		assert_true(slow(&sim) >= shares[i] * (1 + 7 * shares[i]) / 8 * 0.7 ||
			    budget_used(&sim.budget) >= shares[i] * 0.9);
		/* At least a third of it is observed. */
		assert_true(observed(&sim) * 3 >= slow(&sim));
	}
}

/* Hits take a tenth of its CPU time while a window is open. */
static void test_program_that_probes_hardly_slow_down(void **state)
{
	struct simulation sim = server;

	sim.hits_ns = 0.2;
	sim.own_ns = 0.05;
	simulate(&sim, 0.02, 300);
	assert_true(budget_used(&sim.budget) <= 0.02 * 1.02);
	assert_true(budget_used(&sim.budget) >= 0.02 * 0.9);
}

static void test_quiet_program_is_observed_always(void **state)
{
	struct simulation sim = server;

	sim.threads = 0.01;
	sim.hits_ns = sim.own_ns = 0.004;
	simulate(&sim, 0.02, 60);
	assert_int_equal(sim.nr_windows, 1);
	assert_int_equal(sim.budget.nr_windows, 0);
	assert_true(observed(&sim) > 0.999);
}

/* It waits most of the time. A report costs more than the budget allows at that moment. */
static void test_report_closes_no_window(void **state)
{
	struct simulation sim = server;

	sim.threads = 0.15;
	sim.hits_ns = 0.14;
	sim.own_ns = 0.01;
	sim.report_ns = 80 * MS;
	simulate(&sim, 0.5, 60);
	assert_int_equal(sim.nr_windows, 1);
}

static void test_idle_program_is_observed_always(void **state)
{
	struct simulation sim = server;

	sim.threads = sim.hits_ns = sim.own_ns = 0;
	simulate(&sim, 0.001, 60);
	assert_int_equal(sim.nr_windows, 1);
}

/* A window does not observe children that were forked in it. */
static void test_quiet_program_that_forks(void **state)
{
	struct simulation sim = server;

	sim.threads = sim.hits_ns = sim.own_ns = 0;
	sim.fork_each_ns = 20 * SECOND_NS;
	sim.child_ns = 1000 * SECOND_NS;
	simulate(&sim, 0.02, 55);
	assert_int_equal(sim.nr_windows, 3);
	assert_true(observed(&sim) > 0.99);
	/* Always another one: still within the budget. */
	sim.nr_windows = 0;
	sim.fork_each_ns = SECOND_NS / 4;
	sim.helpers_ns = 200 * MS;
	simulate(&sim, 0.02, 300);
	assert_true(sim.nr_windows > 10);
	assert_true(budget_used(&sim.budget) <= 0.02 * 1.1);
}

static void test_children_that_live_for_a_moment(void **state)
{
	struct simulation sim = server;

	sim.threads = sim.hits_ns = sim.own_ns = 0;
	sim.fork_each_ns = SECOND_NS;
	sim.child_ns = SECOND_NS / 3;
	simulate(&sim, 0.02, 60);
	assert_int_equal(sim.nr_windows, 1);
}

static void test_window_closes_when_a_program_becomes_busy(void **state)
{
	struct simulation sim = server;

	sim.busy_from_ns = 31 * SECOND_NS;
	simulate(&sim, 0.02, 30.2);
	assert_int_equal(sim.budget.nr_windows, 1);
	/* Within what the budget allows in a second, while the program was quiet for long. */
	assert_true(sim.now.hits_ns < 0.02 * 1e9 + 1.4 * 29 * MS + MS);
	simulate(&sim, 0.02, 300);
	assert_true(budget_used(&sim.budget) <= 0.02 * 1.02);
}

/* It is idle at first, and what that cost is no plan for the second window. */
static void test_window_after_an_idle_one(void **state)
{
	for (uint64_t late_ms = 0; late_ms < 100; late_ms += 5) {
		struct simulation sim = server;

		sim.hits_ns = 0.4;
		sim.own_ns = 0.1;
		sim.busy_from_ns = 2 * SECOND_NS + late_ms * (uint64_t)MS;
		/* The program fills a part of the rings in that time. */
		sim.round_ns = 10 * (uint64_t)MS;
		simulate(&sim, 0.02, 60);
		assert_true(sim.nr_windows > 6);
		assert_in_range(sim.second_ns, 5 * MS, 100 * MS);
		assert_true(sim.min_credit_ns > -2 * 0.02 * 1e9);
		assert_true(budget_used(&sim.budget) <= 0.02 * 1.02);
	}
}

/* What placing its probes cost does not shorten it. */
static void test_first_window_is_long_enough(void **state)
{
	struct simulation sim = server;

	sim.round_ns = (uint64_t)MS;
	simulate(&sim, 0.001, 10);
	assert_true(sim.first_ns >= BUDGET_MIN_WINDOW_NS);
}

/* Half are short, and one in sixteen shows lives of 80 ms. */
static void test_windows_differ(void **state)
{
	struct simulation sim = server;

	sim.place_ms = sim.remove_ms = 0.5;
	sim.helpers_ns = 1e5;
	simulate(&sim, 0.02, 6000);
	assert_true(sim.nr_windows > 500);
	assert_true(sim.nr_short * 2 > sim.nr_windows);
	assert_true(sim.nr_long * 32 > sim.nr_windows && sim.nr_long * 8 < sim.nr_windows);
	assert_true(slow(&sim) <= 0.02 * (1 + 7 * 0.02) / 8 * 1.3);
}

static void test_pauses_differ(void **state)
{
	struct simulation sim = server;

	simulate(&sim, 0.02, 300);
	assert_true(sim.min_gap_ns * 3 / 2 < sim.max_gap_ns);
}

static void test_windows_last_as_long_as_placing_costs(void **state)
{
	struct simulation sim = server;

	simulate(&sim, 0.02, 600);
	assert_true(sim.budget.length_ns >= BUDGET_MIN_WINDOW_NS);
	/* 29 ms of hits, and 4 ms of ours, at 1.7 for each ns. */
	assert_in_range(sim.budget.length_ns, 20 * MS, 32 * MS);
	sim.place_ms = sim.remove_ms = 0.1;
	sim.helpers_ns = 1e4;
	simulate(&sim, 0.02, 600);
	assert_int_equal(sim.budget.length_ns, BUDGET_MIN_WINDOW_NS);
}

/* To ask costs a tenth of a millisecond. */
static void test_asks_rarely_between_windows(void **state)
{
	struct simulation sim = server;

	/* The credit grows at a fraction of the speed that one busy CPU would give it. */
	sim.threads = 0.2;
	simulate(&sim, 0.005, 3000);
	assert_true(sim.nr_windows > 5);
	assert_true(sim.nr_asked_shut < 3000 * 4);
}

/* A server on a crowded machine, where a CPU-second allows less than asking twice costs. */
static void test_asking_leaves_credit_for_windows(void **state)
{
	struct simulation sim = server;

	sim.threads = sim.thread_part = 0.08;
	sim.ask_ns = 1.5e6;
	simulate(&sim, 0.01, 3000);
	assert_true(sim.nr_windows > 5);
	assert_true(budget_used(&sim.budget) <= 0.01 * 1.1);
}

/* Where to ask is dear, asking more often when little is missing would take what is missing. */
static void test_dear_questions_do_not_delay_windows(void **state)
{
	uint64_t nr_without = 0;

	for (int ask_us = 0; ask_us < 1000; ask_us += 200) {
		struct simulation sim = server;

		sim.threads = sim.thread_part = 0.65;
		sim.ask_ns = ask_us * MS / 1000;
		simulate(&sim, 0.02, 600);
		nr_without = nr_without ? nr_without : sim.nr_windows;
		assert_true(sim.nr_windows * 10 >= nr_without * 7);
		assert_true(budget_used(&sim.budget) <= 0.02 * 1.02);
	}
}

static void test_whole_budget(void **state)
{
	struct simulation sim = server;

	simulate(&sim, 1, 30);
	assert_int_equal(sim.nr_windows, 1);
	assert_true(budget_used(&sim.budget) <= 1);
}

/* On an overloaded machine, a thread gets little: the same program has to be left alone. */
static void test_starved_program(void **state)
{
	struct simulation sim = server;
	struct budget_meter meter = {.now_ns = SECOND_NS};

	budget_init(&sim.budget, 0.02, 1, &meter);
	meter.now_ns += SECOND_NS;
	meter.targets_ns = meter.thread_ns = SECOND_NS / 20;
	budget_update(&sim.budget, &meter);
	assert_true(sim.budget.allowed_ns < 1.01 * MS);
}

/* The recording ends long after the meter was read last. */
static void test_describes_all_of_the_time(void **state)
{
	struct budget_meter meter = {.now_ns = SECOND_NS};
	struct windows windows = {.budget.share = 0.02};
	_cleanup_free_ char *text = NULL;

	budget_init(&windows.budget, 0.02, 1, &meter);
	budget_begin(&windows.budget);
	budget_note_open(&windows.budget, meter.now_ns);
	meter.now_ns += 5 * SECOND_NS;
	meter.thread_ns += 5 * SECOND_NS;
	budget_update(&windows.budget, &meter);
	budget_note_closing(&windows.budget, meter.now_ns);
	budget_note_shut(&windows.budget);
	text = windows_describe(&windows, meter.now_ns + 5 * SECOND_NS);
	assert_string_equal(text,
			    ", 50% of the time observed in 1 window, cost 0% of the CPU time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_program_keeps_to_its_budget),
		cmocka_unit_test(test_program_that_probes_hardly_slow_down),
		cmocka_unit_test(test_quiet_program_is_observed_always),
		cmocka_unit_test(test_report_closes_no_window),
		cmocka_unit_test(test_idle_program_is_observed_always),
		cmocka_unit_test(test_quiet_program_that_forks),
		cmocka_unit_test(test_children_that_live_for_a_moment),
		cmocka_unit_test(test_window_closes_when_a_program_becomes_busy),
		cmocka_unit_test(test_window_after_an_idle_one),
		cmocka_unit_test(test_first_window_is_long_enough),
		cmocka_unit_test(test_windows_differ),
		cmocka_unit_test(test_pauses_differ),
		cmocka_unit_test(test_windows_last_as_long_as_placing_costs),
		cmocka_unit_test(test_asks_rarely_between_windows),
		cmocka_unit_test(test_asking_leaves_credit_for_windows),
		cmocka_unit_test(test_dear_questions_do_not_delay_windows),
		cmocka_unit_test(test_whole_budget),
		cmocka_unit_test(test_starved_program),
		cmocka_unit_test(test_describes_all_of_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
