/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the allocations whose stacks have a given address. */
#ifndef LEAKTOOLS_RECORDER_HELD_COUNTS_H
#define LEAKTOOLS_RECORDER_HELD_COUNTS_H

#include "recorder/held/held_stacks.h"

#include <sys/types.h>

#define HELD_MAX_COUNTED 16

struct held_count {
	pid_t pid; /* 0: nothing is counted */
	uint64_t address, nr;
};

/* All 0: empty. */
struct held_counts {
	struct held_count counts[HELD_MAX_COUNTED];
	size_t nr; /* all behind them are unused */
};

/* Number @nr begins to count, from 0. @pid 0: it ends. */
void held_counts_set(struct held_counts *counts, size_t nr, pid_t pid, uint64_t address);

/* Counts an allocation of process @pid. */
void held_counts_add(struct held_counts *counts, pid_t pid, const struct held_stack *stack);

#endif
