/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the recorded processes have done: their CPU time. */
#ifndef LEAKTOOLS_RECORDER_PROCESS_COUNTS_H
#define LEAKTOOLS_RECORDER_PROCESS_COUNTS_H

#include "recorder/target_table/target_table.h"

#include <stdint.h>

/* What a process has done since its start; 0 if it has ended. */
typedef uint64_t count_of_process_fn(pid_t pid);

/* Zero it before use. */
struct process_counts {
	struct {
		unsigned long long tgid;
		uint64_t last;
	} seen[TARGET_TABLE_SIZE]; /* as the table's entries */
	uint64_t total;
	bool has_begun;
};

/*
 * Returns what the processes of @table have done since the first call. A process that begins after
 * that counts from its begin on. What one has done since the call before its end is missing: of a
 * short-lived one, all (docs/verdicts.md, "Pace").
 */
uint64_t process_counts_read(struct process_counts *counts, struct target_table *table,
			     count_of_process_fn *count_of);

/* The CPU time of @pid, with all its threads, in ns. */
uint64_t cpu_clock_of(pid_t pid);

/*
 * The part of a CPU, up to 1, that one more busy thread would get at this moment, if all threads
 * that are ready to run get as much.
 */
double cpu_part_of_thread(void);

#endif
