/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples how much memory the recorded processes have: at the start, at the end, and in between
 * about once a second, less often as the recording gets long or the processes many. So reports can
 * compare what was recorded with what the processes grew by (docs/memory.md). In the recording,
 * each is a sample of the event leakrec:memory (own_samples.h).
 */
#ifndef LEAKTOOLS_RECORDER_MEMORY_SAMPLES_H
#define LEAKTOOLS_RECORDER_MEMORY_SAMPLES_H

#include "recorder/output/perf_writer.h"

/* Others are not sampled. */
#define MEMORY_MAX_PROCESSES 256

struct memory_process {
	pid_t pid;
	int proc_fd; /* /proc/PID, which never becomes another process's */
};

/* Zero it before use, except for @longest_ns. */
struct memory_samples {
	struct memory_process processes[MEMORY_MAX_PROCESSES];
	size_t nr;
	uint32_t nr_turns;
	uint64_t start_ns, next_ns;
	uint64_t longest_ns; /* the longest pause, except for very many processes; 0: no limit */
	uint64_t full_ns;    /* when it was last full, and forgot those that had ended */
	bool left_out;	     /* there were too many */
};

void memory_samples_deinit(struct memory_samples *samples);

/* A process to sample. It is left out if too many are alive, or if it is gone. */
void memory_samples_add(struct memory_samples *samples, pid_t pid);

/* Process @ppid has forked @pid: adds it if @ppid is sampled. Returns true then. */
bool memory_samples_fork(struct memory_samples *samples, pid_t pid, pid_t ppid);

/* True if it is time for another turn. */
static inline bool memory_samples_are_due(const struct memory_samples *samples, uint64_t now_ns)
{
	return now_ns >= samples->next_ns && samples->nr > 0;
}

/* How long after @now_ns the next turn is due. */
uint64_t memory_samples_pause_ns(const struct memory_samples *samples, uint64_t now_ns);

/* Samples all of them, and forgets those that have ended. Returns 0 or the writer's error. */
int memory_samples_write(struct memory_samples *samples, struct perf_writer *writer);

#endif
