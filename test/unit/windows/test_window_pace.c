/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pace that windows write into a recording. The machine and the program are simulated: what
 * hits probes, counts, keeps time and writes are stubs.
 */
#include "recorder/windows/windows.h"

#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/output/own_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#define MS	  1000000ULL
#define HIT_NS	  1000
#define WINDOW_NS (5 * MS)
#define GAP_NS	  (300 * MS)

/* What the program does in a ns: with probes, and without. */
struct program {
	double cpus[2], hits[2], transfers[2];
};

/* A server that handles a tenth as many requests with probes. */
static const struct program saturated = {
	.cpus = {1, 1}, .hits = {0, 0.9 / HIT_NS}, .transfers = {40.0 / MS, 4.0 / MS}};
/* The same without transfers. */
static const struct program computing = {.cpus = {1, 1}, .hits = {0, 0.9 / HIT_NS}};
/* It waits for a timer, and rarely hits a probe. */
static const struct program quiet = {
	.cpus = {0.1, 0.1}, .hits = {0, 2.0 / MS}, .transfers = {20.0 / MS, 20.0 / MS}};
static const struct program idle;

static struct {
	uint64_t now_ns, opened_ns, closed_ns;
	bool has_probes;
	double cpu_ns, hits, window_hits, transfers;
	bool is_counting;
	const struct program *program;
	uint64_t late_ns; /* so long leakrec does not run after the next open */
	bool interrupts;  /* nor after it has read hits for the first time in a while */
	uint64_t read_ns; /* it did that */
	uint64_t work_ns; /* CPU time that reading what was done takes */
	unsigned int nr_readings;
	uint64_t pace; /* that was written */
} at;

static void pass(uint64_t ns)
{
	double hits = at.program->hits[at.has_probes] * (double)ns, before = at.hits;

	at.now_ns += ns;
	at.cpu_ns += at.program->cpus[at.has_probes] * (double)ns;
	at.hits += hits;
	/* As one CPU counts them. */
	if (at.opened_ns && !at.closed_ns)
		for (uint64_t i = (uint64_t)before / BPF_HITS_STEP;
		     i < (uint64_t)at.hits / BPF_HITS_STEP; i++)
			at.window_hits += BPF_HITS_STEP;
	if (at.is_counting)
		at.transfers += at.program->transfers[at.has_probes] * (double)ns;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t ns = 0;

	if (clock == CLOCK_MONOTONIC)
		ns = at.now_ns;
	else if (clock == CLOCK_THREAD_CPUTIME_ID)
		ns = at.nr_readings * at.work_ns;
	*ret = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return 0;
}

struct target_table *bpf_recorder_target_table(const struct bpf_recorder *recorder)
{
	return NULL;
}

uint64_t process_counts_read(struct process_counts *counts, struct target_table *table,
			     count_of_process_fn *count_of)
{
	at.nr_readings++;
	pass(at.work_ns);
	return (uint64_t)at.cpu_ns;
}

uint64_t cpu_clock_of(pid_t pid)
{
	return 0;
}

double cpu_part_of_thread(void)
{
	return 1;
}

struct hit_costs hit_costs_measure(const struct bpf_recorder *recorder)
{
	return (struct hit_costs){HIT_NS, HIT_NS};
}

int bpf_window_open(struct bpf_recorder *recorder, uint64_t max_hits, uint64_t *ret_opened_ns)
{
	at.has_probes = true;
	at.window_hits = 0;
	*ret_opened_ns = at.opened_ns = at.now_ns;
	at.closed_ns = 0;
	pass(at.late_ns);
	at.late_ns = 0;
	return 1;
}

void bpf_window_close(struct bpf_recorder *recorder)
{
	at.closed_ns = at.now_ns;
}

uint64_t bpf_window_closed_ns(const struct bpf_recorder *recorder)
{
	return at.closed_ns;
}

bool bpf_window_is_closing(const struct bpf_recorder *recorder)
{
	return at.has_probes && at.closed_ns;
}

uint64_t bpf_window_nr_hits(const struct bpf_recorder *recorder)
{
	uint64_t hits = (uint64_t)at.window_hits;

	if (at.interrupts && at.now_ns != at.read_ns)
		pass(20 * MS);
	at.read_ns = at.now_ns;
	return hits;
}

struct bpf_window_hits bpf_window_hits(const struct bpf_recorder *recorder)
{
	return (struct bpf_window_hits){.hits = (uint64_t)at.hits};
}

bool bpf_window_has_new(const struct bpf_recorder *recorder)
{
	return false;
}

double bpf_window_part(const struct bpf_recorder *recorder)
{
	return 1;
}

void bpf_window_extend(struct bpf_recorder *recorder, uint64_t max_hits)
{
}

void bpf_window_begin_unlink(struct bpf_recorder *recorder)
{
}

bool bpf_window_is_unlinked(struct bpf_recorder *recorder)
{
	at.has_probes = false;
	return true;
}

bool bpf_window_begin_counting(struct bpf_recorder *recorder)
{
	at.is_counting = true;
	return true;
}

void bpf_window_end_counting(struct bpf_recorder *recorder)
{
	at.is_counting = false;
}

uint64_t bpf_window_nr_transfers(const struct bpf_recorder *recorder)
{
	return (uint64_t)at.transfers;
}

int own_samples_write(struct perf_writer *writer, enum own_sample kind, pid_t pid, uint64_t time_ns,
		      uint32_t first, const uint64_t *values)
{
	at.pace = *values;
	return 0;
}

int looks_create(uint64_t seed, struct looks **ret)
{
	return 0;
}

void looks_destroy(struct looks *looks)
{
}

void looks_choose(struct looks *looks, const struct held_blocks *held, struct target_table *table,
		  uint64_t from_ns)
{
}

int looks_take(struct looks *looks, struct target_table *table, struct perf_writer *writer,
	       bool at_all)
{
	return 0;
}

int call_counts_create(const struct call_counts_of *of, struct call_counts **ret)
{
	return 0;
}

void call_counts_destroy(struct call_counts *counts)
{
}

void call_counts_serve(struct call_counts *counts, const struct looks *looks)
{
}

void call_counts_begin_trial(struct call_counts *counts)
{
}

void call_counts_end_trial(struct call_counts *counts, uint64_t window_ns)
{
}

int call_counts_write(const struct call_counts *counts, struct perf_writer *writer)
{
	return 0;
}

void held_blocks_apply(struct held_blocks *held, uint64_t until_ns)
{
}

void held_blocks_forget(struct held_blocks *held)
{
}

static struct windows begin(const struct program *program, uint64_t first_gap_ns)
{
	static struct bpf_recorder recorder = {.nr_rings = 1};
	struct windows windows;

	at = (typeof(at)){.now_ns = 1000 * MS, .program = program};
	/* There is always credit for a window. */
	windows_init(&windows, &recorder, 100);
	pass(first_gap_ns);
	return windows;
}

/*
 * Opens a window, @late_ns before leakrec goes on, and a program closes it @ns later. Returns the
 * pace that is written.
 */
static uint64_t window(struct windows *windows, uint64_t late_ns, uint64_t ns)
{
	at.late_ns = late_ns;
	if (!at.opened_ns) {
		windows_start(windows, &(const struct windows_of){.keeps_held = true});
	} else {
		pass(GAP_NS);
		windows_serve(windows, true); /* begins to count transfers */
		pass(20 * MS);
		windows_serve(windows, true);
	}
	assert_int_equal(windows->budget.state, BUDGET_OPEN);
	pass(ns);
	bpf_window_close(NULL);
	pass(2 * MS);
	windows_serve(windows, false); /* sees it */
	pass(2 * MS);
	windows_serve(windows, false); /* the probes are gone */
	windows_serve(windows, true);
	assert_int_equal(windows->budget.state, BUDGET_SHUT);
	return at.pace;
}

/* A pace that is @expected, give or take 15 %. */
static void assert_near(uint64_t pace, uint64_t expected)
{
	if (pace < expected * 85 / 100 || pace > expected * 115 / 100)
		fail_msg("%llu instead of %llu", (unsigned long long)pace,
			 (unsigned long long)expected);
}

/* After the open, leakrec loses its CPU: it is late in reading what has been done. */
static void a_late_reading_counts_for_itself(void **state)
{
	for (unsigned int late_window = 0; late_window < 4; late_window++) {
		struct windows windows = begin(&saturated, 3 * GAP_NS);

		for (unsigned int i = 0; i < 8; i++)
			assert_near(window(&windows, i == late_window ? 50 * MS : 0, WINDOW_NS),
				    100);
	}
}

/* It goes on when the window has closed. */
static void a_window_that_is_over_does_not_count(void **state)
{
	struct windows windows = begin(&saturated, 3 * GAP_NS);

	assert_near(window(&windows, 0, WINDOW_NS), 100);
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(windows.budget.state, BUDGET_SHUT);
		assert_near(window(&windows, 50 * MS, 0), 100);
	}
}

/* It loses its CPU between readings that belong together. */
static void an_interrupted_reading_is_repeated(void **state)
{
	struct windows windows = begin(&computing, 3 * GAP_NS);

	at.interrupts = true;
	for (unsigned int i = 0; i < 5; i++)
		window(&windows, 0, WINDOW_NS);
	/* The mean of what it is if hits cost 0.7 to 1.3 times as much. */
	assert_near(at.pace, 144);
}

/* Of thousands of processes, that takes long, and would each time. */
static void a_slow_reading_is_not_repeated(void **state)
{
	struct windows windows;
	unsigned int nr;

	for (unsigned int i = 0; i < 2; i++) {
		windows = begin(&computing, 3 * GAP_NS);
		at.work_ns = i * MS;
		at.nr_readings = 0;
		window(&windows, 0, WINDOW_NS);
		if (i)
			assert_int_equal(at.nr_readings, nr);
		nr = at.nr_readings;
	}
}

/* Hits of the open window are counted in steps: few ones may be none, or look like 32. */
static void few_hits_do_not_tell_what_the_window_has(void **state)
{
	struct windows windows = begin(&quiet, 3 * GAP_NS);

	for (unsigned int i = 0; i < 20; i++)
		assert_near(window(&windows, 0, WINDOW_NS), 1000);
}

/* Before it works, no pace is known. */
static void an_idle_program_has_no_pace(void **state)
{
	struct windows windows = begin(&idle, 10 * GAP_NS);

	at.program = &saturated;
	assert_int_equal(window(&windows, 0, WINDOW_NS), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_near(window(&windows, 0, WINDOW_NS), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_reading_counts_for_itself),
		cmocka_unit_test(a_window_that_is_over_does_not_count),
		cmocka_unit_test(an_interrupted_reading_is_repeated),
		cmocka_unit_test(a_slow_reading_is_not_repeated),
		cmocka_unit_test(few_hits_do_not_tell_what_the_window_has),
		cmocka_unit_test(an_idle_program_has_no_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
