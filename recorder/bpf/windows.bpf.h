/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recording in windows (recorder/windows/windows.h): the recorder links the programs, lets them
 * record for some milliseconds, and ends the links. A program that finds that a window has cost
 * enough, or that a ring is half full, closes the window itself: the process need not be stopped.
 *
 * The kernel needs a while to place and to remove all probes of a window, and threads hit some of
 * them meanwhile. So what a call has left behind in an earlier window counts for nothing, and a
 * call whose entry was recorded may end while the window is closing.
 */
#ifndef LEAKTOOLS_RECORDER_WINDOWS_BPF_H
#define LEAKTOOLS_RECORDER_WINDOWS_BPF_H

#include "recorder/bpf/bpf_recorder_shared.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

const volatile bool in_windows = false;

struct bpf_window window;
struct bpf_cpu cpus[BACKPRESSURE_MAX_CPUS];
bool recording; /* between its start and its end */

__attribute__((noinline)) int wake_recorder(void);

static __attribute__((always_inline, unused)) unsigned int window_state(void)
{
	return *(volatile unsigned int *)&window.state;
}

/* True if calls that begin now are recorded. */
static __attribute__((always_inline, unused)) bool records_calls(void)
{
	return recording && (!in_windows || window_state() == BPF_WINDOW_OPEN);
}

/* True if the end of a call whose beginning was recorded is recorded. */
static __attribute__((always_inline, unused)) bool records_ends(void)
{
	return recording && (!in_windows || window_state() != BPF_WINDOW_SHUT);
}

/* Closes the window now. What has begun goes on. */
__attribute__((noinline, unused)) int close_window(void)
{
	unsigned long long now_ns = bpf_ktime_get_ns();

	if (__sync_val_compare_and_swap(&window.state, BPF_WINDOW_OPEN, BPF_WINDOW_CLOSING) !=
	    BPF_WINDOW_OPEN)
		return 0;
	window.closed_ns = now_ns;
	wake_recorder();
	return 0;
}

/*
 * Counts a hit, which costs something whether it is recorded or not. Another task may preempt this
 * one and count on the same CPU; that a hit is then missed does not matter.
 */
static __attribute__((always_inline, unused)) void count_hit(bool is_stepped)
{
	unsigned int nr = bpf_get_smp_processor_id() & (BACKPRESSURE_MAX_CPUS - 1);
	unsigned long long hits;

	if (!in_windows)
		return;
	if (is_stepped)
		cpus[nr].stepped_hits++;
	hits = ++cpus[nr].hits;
	if (hits % BPF_HITS_STEP || window_state() != BPF_WINDOW_OPEN)
		return;
	if (__sync_fetch_and_add(&window.hits, BPF_HITS_STEP) >= window.max_hits)
		close_window();
}

#endif
