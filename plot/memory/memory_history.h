/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples of a process's memory over any time, in bounded memory: when the history is full,
 * each two neighbours are merged into their maximum, so that no peak is lost.
 */
#ifndef LEAKTOOLS_PLOT_MEMORY_HISTORY_H
#define LEAKTOOLS_PLOT_MEMORY_HISTORY_H

#include "plot/memory/process_memory.h"

#include <stddef.h>

/* More than the pixels across a plot. */
#define MEMORY_HISTORY_MAX 8192

struct memory_history {
	struct memory_sample samples[MEMORY_HISTORY_MAX];
	size_t nr;
	struct memory_sample first; /* the very first sample */
	struct memory_sample last;  /* and the latest, both unmerged */
};

/* Adds a sample; its time must not be before that of the last one. */
void memory_history_add(struct memory_history *history, const struct memory_sample *sample);

#endif
