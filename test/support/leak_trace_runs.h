/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes and threads of a simulated program, and its random numbers. */
#ifndef LEAKTOOLS_TEST_SUPPORT_LEAK_TRACE_RUNS_H
#define LEAKTOOLS_TEST_SUPPORT_LEAK_TRACE_RUNS_H

#include "test/support/leak_traces.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *check(void *p)
{
	if (!p) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return p;
}

/* Between 0 and 1, exclusive. */
static inline double draw(struct leak_trace *trace)
{
	/* xorshift64* */
	trace->random ^= trace->random >> 12;
	trace->random ^= trace->random << 25;
	trace->random ^= trace->random >> 27;
	return ((double)((trace->random * 2685821657736338717u) >> 11) + 0.5) * 0x1p-53;
}

static inline double draw_between(struct leak_trace *trace, double low, double high)
{
	return low + (high - low) * draw(trace);
}

static inline double draw_log_between(struct leak_trace *trace, double low, double high)
{
	return exp(draw_between(trace, log(low), log(high)));
}

/* Makes trace->runs: one process, or with TRACE_SERVERS those of all actors. */
void leak_trace_add_runs(struct leak_trace *trace);

/* How long it has run by the end of the recording, in the recording. */
double leak_trace_lived_s(const struct leak_trace *trace, const struct trace_run *run);

/* Draws who runs a part of that kind. */
enum trace_actor leak_trace_draw_actor(struct leak_trace *trace, enum trace_kind kind);

#endif
