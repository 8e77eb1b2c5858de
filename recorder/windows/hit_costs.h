/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hit of a probe costs on this machine: measured in a process of our own. */
#ifndef LEAKTOOLS_RECORDER_HIT_COSTS_H
#define LEAKTOOLS_RECORDER_HIT_COSTS_H

#include "recorder/programs/bpf_windows.h"

/* In ns of CPU time, with what the recording program adds. */
struct hit_costs {
	double plain_ns;   /* the kernel emulates the instruction below the probe, as at most places
			    */
	double stepped_ns; /* it steps it, with a second trap: a `ret` */
};

/*
 * Measures the costs, in a child in which the recording program runs, which takes a tenth of a
 * second. The recording must not have begun. If that fails, it says so and returns what is usual.
 */
struct hit_costs hit_costs_measure(const struct bpf_recorder *recorder);

static inline uint64_t hit_costs_sum_ns(const struct hit_costs *costs,
					const struct bpf_window_hits *hits)
{
	return (uint64_t)((double)(hits->hits - hits->stepped) * costs->plain_ns +
			  (double)hits->stepped * costs->stepped_ns);
}

#endif
