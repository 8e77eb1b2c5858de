/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast the program works in windows, compared with all the time around them. Probes slow down a
 * program that has more to do than it can do, to a tenth or less; one that waits for a timer keeps
 * its pace. What a window saw stands for as much time as the program would have needed without
 * probes (docs/verdicts.md, "In windows"). Pure: counts in, a ratio out.
 *
 * Transfers (calls that read, write, receive and send) are counted, in a sample of the time, and
 * CPU time without that of hits. The first tells better, but only where there are many, and they
 * may belong to work that does not allocate. The second one holds for any work, but where hits take
 * nearly all CPU time it is the small difference of two large numbers, one of which is an estimate.
 * So it bounds the first one, from above only if the difference is larger than its error.
 *
 * Where there are no transfers, and the difference tells nothing, it matters that a program with
 * time to wait is not slowed down by more than its hits take.
 */
#ifndef LEAKTOOLS_RECORDER_PACE_H
#define LEAKTOOLS_RECORDER_PACE_H

#include <stdint.h>

/* What the recorded processes have done so far. No value may fall. */
struct pace_meter {
	uint64_t now_ns;
	uint64_t thread_ns; /* CPU time that one more busy thread would have had */
	uint64_t cpu_ns;    /* with what hits cost */
	uint64_t hits_ns;   /* by hits, as estimated */
};

/* Transfers in a part of that time. @ns is 0 if they were not counted. */
struct pace_sample {
	uint64_t ns, transfers;
};

struct pace_sums {
	double ns, cpu_ns, hits_ns;
	double thread_ns;
	double busy_hits_ns; /* each time's hits, by how much of it the program was busy */
	double sampled_ns, transfers;
};

/* Zero it before use. */
struct pace {
	struct pace_sums within, between; /* windows; the latest ones count most */
};

/*
 * All probes stood from @from to @to. In @part of the hits of that time, from 0 to 1, a window of
 * @window_ns was open.
 */
void pace_add_window(struct pace *pace, const struct pace_meter *from, const struct pace_meter *to,
		     const struct pace_sample *sample, double part, uint64_t window_ns);
/* None stood. */
void pace_add_gap(struct pace *pace, const struct pace_meter *from, const struct pace_meter *to,
		  const struct pace_sample *sample);

/*
 * The pace in the latest windows: 0.1 if the program does a tenth as much there as on average. 0 if
 * that is not known: the program did nothing between them yet, or there was none.
 */
double pace_ratio(const struct pace *pace);

#endif
