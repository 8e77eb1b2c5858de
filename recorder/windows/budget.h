/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides when a recording that keeps to a budget observes the program (windows.h). Pure: measured
 * costs in, decisions out.
 *
 * The budget is a share of the CPU time that the recorded processes use, or of what a busy thread
 * would get, if they use less: one CPU's time, and less where more threads are ready than there are
 * CPUs. Cost is the time of hits of probes, recorded or not, and all of our own CPU time.
 * What the budget allows adds to a credit, and cost takes from it. A window opens when the credit
 * covers what a window is expected to cost, give or take half at random: periodic work of the
 * program is neither always met nor always missed. It closes when it has lasted as long as placing
 * and removing the probes cost, unless the program is quiet: as long as the credit lasts, a window
 * stays open. It closes earlier if it has become far dearer than planned. But a window observes
 * only what there was when it began. So it also closes when there has been something new for a
 * while, and the next window is paid for.
 */
#ifndef LEAKTOOLS_RECORDER_BUDGET_H
#define LEAKTOOLS_RECORDER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_MIN_WINDOW_NS 5000000ULL

/* What has been used so far, in ns; all but @now_ns is CPU time. No value may fall. */
struct budget_meter {
	uint64_t now_ns;     /* CLOCK_MONOTONIC */
	uint64_t targets_ns; /* by the recorded processes, with what hits cost them */
	uint64_t thread_ns;  /* by a thread, had it always been ready to run */
	uint64_t hits_ns;    /* by hits: their number, times what one costs */
	uint64_t own_ns;     /* by the recorder, its threads, its watchdog and its live parser */
	uint64_t helpers_ns; /* by processes of ours that placed and removed probes */
};

enum budget_state { BUDGET_SHUT, BUDGET_OPEN, BUDGET_CLOSING };

struct budget {
	double share; /* 0.02 for 2 % */
	enum budget_state state;
	struct budget_meter first, last;
	double credit_ns, allowed_ns, cost_ns;
	/* The window that is open, or was the last. */
	struct budget_meter began, opened, closed;
	/*
	 * A busy program's window lasts for the longer one. In less than the first, placing and
	 * removing the probes would cost more than what it shows.
	 */
	uint64_t length_ns, least_ns;
	double threshold_ns;	/* the credit at which the next one opens */
	uint64_t rest_until_ns; /* nor does it open before */
	uint64_t new_since_ns;	/* 0: it observes all there is */
	/* The program's latest pace: since about a tenth of a second. */
	double mark_cost_ns, mark_allowed_ns;
	uint64_t mark_ns, mark_hits_ns;
	bool is_busy; /* it costs more than the budget allows */
	bool is_hit;  /* hits alone do */
	/* Expected of the next window. */
	double fixed_ns, rate; /* of placing and removing probes; in ns for each ns it is open */
	/* Since the latest window: what asking cost, and what the budget allowed meanwhile. */
	struct budget_asked {
		uint64_t nr, ns;
		double cost_ns, allowed_ns;
	} asked;
	uint64_t random;
	/* Of windows that have closed. */
	uint64_t nr_windows, observed_ns;
};

/*
 * Begins at @now, with the credit of a second, as after any other second without cost. The first
 * window opens at once. @seed: any number.
 */
void budget_init(struct budget *ret, double share, uint64_t seed, const struct budget_meter *now);

/* Call it before each of the following ones. */
void budget_update(struct budget *budget, const struct budget_meter *now);

/* A window begins: its probes are placed; at @now_ns, it is open. */
void budget_begin(struct budget *budget);
void budget_note_open(struct budget *budget, uint64_t now_ns);

/*
 * It is closed since @closed_ns, and its probes are being removed; they are gone, and what it
 * brought is written.
 */
void budget_note_closing(struct budget *budget, uint64_t closed_ns);
void budget_note_shut(struct budget *budget);

/* While a window is open: whether there is something that only the next one would observe. */
void budget_note_new(struct budget *budget, bool has_new);

bool budget_wants_open(const struct budget *budget);
bool budget_wants_close(const struct budget *budget);

/* What hits may cost from now until budget_next_ns() before the window has to close, in ns. */
double budget_allowance_ns(const struct budget *budget);

/* When to ask again, after @now_ns. */
uint64_t budget_next_ns(const struct budget *budget);

/* How much of the time since the start was observed, as a share, if that is @now_ns. */
double budget_observed(const struct budget *budget, uint64_t now_ns);

/* The share of the CPU time that the cost was; the budget allows budget->share. */
double budget_used(const struct budget *budget);

#endif
