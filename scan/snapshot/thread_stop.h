/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops all threads of a process by ptrace and reads their registers. When the thread that calls
 * these functions ends, the kernel releases them.
 */
#ifndef LEAKTOOLS_SCAN_THREAD_STOP_H
#define LEAKTOOLS_SCAN_THREAD_STOP_H

#include "scan/snapshot/snapshot.h"

struct stopped_thread {
	pid_t tid;
	bool has_stopped; /* and was waited for */
	int signal;	  /* that it was about to receive; delivered when it is released */
};

struct thread_stop {
	pid_t pid;
	struct stopped_thread *threads;
	size_t nr;
	size_t nr_sorted; /* the first of them are in order */
	pid_t late;	  /* result: a thread that did not stop in time; 0: none */
};

/*
 * Stops the threads of @pid. Returns 0; -ETIMEDOUT after @end_ns (CLOCK_MONOTONIC); -ESRCH; or
 * another negative errno. Reports nothing. Release with thread_stop_release() in either case.
 */
int thread_stop_all(struct thread_stop *ret, pid_t pid, uint64_t end_ns);

/* Reads the registers of all into @snapshot. Returns 0, -ETIMEDOUT or another negative errno. */
int thread_stop_read_registers(const struct thread_stop *stop, struct snapshot *snapshot,
			       uint64_t end_ns);

/* What has not stopped yet is released when the calling thread ends. */
void thread_stop_release(struct thread_stop *stop);

#endif
