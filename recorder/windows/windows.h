/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records in windows, so that the recording keeps to a budget (budget.h). The programs stay loaded.
 * A window is a link for each file and process, and its end; bpf_windows.h says what the kernel
 * does then. In the recording, samples of leakrec:window mark where windows begin and end
 * (common/schema/look_state.h).
 *
 * All samples of a window lie between the two in time and in order: the few that were finished
 * after the close (their calls had begun before it) get the time of the close. So no round ends
 * between the close and the moment when the kernel has removed the probes: see
 * windows_hold_round().
 */
#ifndef LEAKTOOLS_RECORDER_WINDOWS_H
#define LEAKTOOLS_RECORDER_WINDOWS_H

#include "recorder/output/perf_writer.h"
#include "recorder/windows/budget.h"
#include "recorder/windows/call_counts.h"
#include "recorder/windows/hit_costs.h"
#include "recorder/windows/looks.h"
#include "recorder/windows/pace.h"
#include "recorder/windows/process_counts.h"

#include <linux/perf_event.h>

/* What windows use of the session. */
struct windows_of {
	struct perf_writer *writer;
	struct held_blocks *held; /* gets what is recorded */
	bool keeps_held;	  /* a scan needs the blocks of all windows */
	pid_t pid;		  /* of the samples, for perf script */
	pid_t watchdog;		  /* whose CPU time counts as ours */
	pid_t live_parser;	  /* the same; 0: there is none */
};

/* What has been done so far. */
struct windows_work {
	struct pace_meter meter;
	uint64_t nr_hits, nr_in_window; /* all hits; those in the latest window */
};

struct windows {
	struct bpf_recorder *recorder;
	struct windows_of of;
	struct looks *looks;
	struct call_counts *calls;
	struct hit_costs costs;
	struct process_counts cpu_times;
	struct pace pace;
	struct windows_work work;  /* at the begin of the window, or of the time without probes */
	struct pace_sample sample; /* of the open window, from samples that have ended */
	/*
	 * Since when transfers are counted (0: they are not), and what they were then; when that
	 * last began or ended.
	 */
	uint64_t counting_ns, counted_before, counted_ns;
	uint64_t last_ns;
	uint64_t live_ns; /* the CPU time of @of.live_parser, also when it has died */
	double thread_ns; /* struct budget_meter's */
	struct budget budget;
	uint64_t opened_ns, closed_ns; /* of the window whose samples are read; UINT64_MAX: open */
	bool is_unlinked;	       /* the probes are gone; the rings may still hold samples */
	bool found_none; /* there was no process to record when a window was to be opened */
};

/*
 * Measures what a hit costs. Call it before the recording starts. @share: of the CPU time, above 0.
 * The recorder and the writer must outlive @ret.
 */
void windows_init(struct windows *ret, struct bpf_recorder *recorder, double share);

void windows_deinit(struct windows *windows);

/*
 * The recording begins: opens the first window. Returns 0, the writer's error, or another one,
 * reported.
 */
int windows_start(struct windows *windows, const struct windows_of *of);

/* True between windows: nothing is recorded. */
static inline bool windows_are_shut(const struct windows *windows)
{
	return windows->budget.state == BUDGET_SHUT;
}

/* True if no round may end now: samples of the closed window may still come. */
bool windows_hold_round(const struct windows *windows);

/*
 * Puts the time of a sample of the window into it. Returns @record, or a copy in @to, which has
 * room for it.
 */
const struct perf_event_header *windows_fit(const struct windows *windows,
					    const struct perf_event_header *record, void *to);

/*
 * After each round: closes and opens windows. @is_drained: the rings are empty. Returns 0, the
 * writer's error, or another one, reported.
 */
int windows_serve(struct windows *windows, bool is_drained);

/*
 * Says again, as of @time_ns between two rounds, whether a window is open: for a segment that
 * begins there. Returns 0 or the writer's error.
 */
int windows_restate(const struct windows *windows, uint64_t time_ns);

/* How long to wait for the next round at most. */
int windows_timeout_ms(const struct windows *windows, int longest_ms);

/*
 * The recording ends: looks at all blocks once more, and closes the window. Between these, programs
 * are stopped, and the rings drained; the second one writes where the window has ended. Return 0 or
 * the writer's error.
 */
int windows_stop(struct windows *windows);
int windows_finish(struct windows *windows);

/*
 * ", 3.9% of the time observed in 120 windows, cost 1.9% of the CPU time"; the caller frees it.
 * @end_ns is when the recording ended: between windows, the meter is read rarely.
 */
char *windows_describe(const struct windows *windows, uint64_t end_ns);

#endif
