/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A time limit for the analysis of one file. A hostile file can be made to take for ever, or all
 * memory. Code that analyses a file asks from time to time whether the limit is reached, and then
 * stops with what it has; the caller that set the limit discards that. Each thread has its own
 * limit.
 */
#ifndef LEAKTOOLS_PROBES_ANALYSIS_LIMIT_H
#define LEAKTOOLS_PROBES_ANALYSIS_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The largest debug files of Debian 12 take a tenth of it. With the start and the end of the
 * process that analyses, that is no more than 2 s.
 */
#define ANALYSIS_LIMIT_NS 1900000000ULL

/*
 * Starts the limit. @cpu_ns is CPU time of this thread; elapsed time may be 15 times as long, or 4
 * times if @cpu_ns is less than ANALYSIS_LIMIT_NS.
 */
void analysis_limit_begin(uint64_t cpu_ns);

/* Ends the limit. Returns true if it was reached. */
bool analysis_limit_end(void);

/*
 * Counts @steps more, of about a nanosecond each. Returns true if the limit is reached. It stays
 * reached until analysis_limit_end().
 */
bool analysis_limit_is_reached(uint64_t steps);

/*
 * Has @pause called from time to time while a limit is set, for work that cannot wait for the end
 * of an analysis. The CPU time that it takes does not count. NULL: nothing is called.
 */
void analysis_limit_set_pause(void (*pause)(void *context), void *context);

/* Does that work now, for a thread that waits for an analysis. */
void analysis_limit_pause(void *unused);

/* The elapsed time that an analysis may take. */
uint64_t analysis_limit_elapsed_ns(uint64_t cpu_ns);

/* Counts CPU time that another process has taken for this thread's analysis. */
void analysis_limit_count(uint64_t cpu_ns);

/* The CPU time that this thread and those processes have taken, without that of pauses. */
uint64_t analysis_limit_thread_ns(void);

/* Ends the analysis: a table of the file is too large, or is not one that linkers write. */
void analysis_limit_reach(void);

#endif
