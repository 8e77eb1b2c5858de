/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated program as leakrec --budget sees it: 20 ms of each second, at random. Of the blocks
 * of a stack that outlive a window, it follows a few. It looks at these soon after the window, then
 * about 1, 2, 4, ... seconds after each other and at the end, and does not see whether an address
 * has another block by then.
 *
 * Hard windows are of 5 to 200 ms. Calls return after the close, threads are delayed, and where a
 * block had a short life, another part's leak may stay.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_LEAK_TRACE_WINDOWS_H
#define LEAKTOOLS_TEST_SUPPORT_LEAK_TRACE_WINDOWS_H

#include "parser/windows/followed_blocks.h"
#include "parser/windows/observed_time.h"
#include "test/support/leak_traces.h"

#define TRACE_OBSERVED_SHARE 0.02

void leak_trace_windows_init(struct leak_trace *trace, bool are_hard);
void leak_trace_windows_deinit(struct leak_trace *trace);

/* True if a window is open at @at_s. */
bool leak_trace_windows_show(const struct leak_trace *trace, double at_s);
/* A block that lives from @at_s to @freed_s. */
void leak_trace_windows_add(struct leak_trace *trace, const struct site_block *block, double at_s,
			    double freed_s);
/* Decides what becomes of the blocks that outlived their windows. */
void leak_trace_windows_settle(struct leak_trace *trace);

/* For verdict_input. */
const struct observed_time *leak_trace_observed(const struct leak_trace *trace);
const struct followed_block *leak_trace_followed(const void *trace, const struct heap_block *block);

/* leak_traces.c: adds it to trace->held. */
void leak_trace_hold(struct leak_trace *trace, const struct site_block *block);

#endif
