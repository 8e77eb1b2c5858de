/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells whether a process slept all the time, and reads its threads' registers, without stopping
 * it: no system call of it is interrupted. A BPF program at the task iterator reads what the kernel
 * stored when each thread left its CPU, and how often it did. A thread that is on no CPU, and was
 * switched as often as before, has not run in between.
 *
 * Needs Linux 6.1, where the iterator can be told a process, x86-64, and the right to load
 * programs.
 */
#ifndef LEAKTOOLS_SCAN_SLEEPING_THREADS_H
#define LEAKTOOLS_SCAN_SLEEPING_THREADS_H

#include "scan/snapshot/snapshot.h"

struct sleeping_threads {
	struct sleeping_threads_bpf *bpf;
	struct bpf_link *link;
	uint8_t *before, *after; /* records of sleeping_threads_shared.h */
	size_t before_bytes, after_bytes;
};

/*
 * Prepares to read the threads of @pid. Returns 0 or a negative errno where that is not possible;
 * reports nothing. Release with sleeping_threads_deinit() in either case.
 */
int sleeping_threads_init(struct sleeping_threads *ret, pid_t pid);
void sleeping_threads_deinit(struct sleeping_threads *threads);

/*
 * Notes where the threads are. Returns 0; -EAGAIN if one of them runs, or if another process uses
 * this memory; or another negative errno.
 */
int sleeping_threads_begin(struct sleeping_threads *threads);

/*
 * Returns 0 if no thread has run since sleeping_threads_begin(), and stores the threads with their
 * registers in @snapshot; -EAGAIN if one has; or another negative errno.
 */
int sleeping_threads_end(struct sleeping_threads *threads, struct snapshot *snapshot);

/*
 * True if the memory of the process, which stands still, is used by another process, too (CLONE_VM
 * without CLONE_THREAD). False where that cannot be told.
 */
bool sleeping_threads_have_others(struct sleeping_threads *threads);

#endif
