/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several threads for one piece of work, which they share out among themselves. */
#ifndef LEAKTOOLS_SCAN_THREAD_TEAM_H
#define LEAKTOOLS_SCAN_THREAD_TEAM_H

#define TEAM_MAX_THREADS 16

/* Of what one thread writes all the time: no two share a line of the cache, or a pair of them. */
#define TEAM_ALIGNED __attribute__((aligned(128)))

/* One for each CPU that this process may use, TEAM_MAX_THREADS at most. */
unsigned thread_team_size(void);

/*
 * Calls @run with @context and the numbers 0 to @nr_threads - 1, each in a thread of its own; 0 is
 * the caller's. A thread that cannot be started is left out, so the others must be able to do all
 * of the work. Returns when all are done. @nr_threads is TEAM_MAX_THREADS at most.
 */
void thread_team_run(unsigned nr_threads, void (*run)(void *context, unsigned thread),
		     void *context);

#endif
