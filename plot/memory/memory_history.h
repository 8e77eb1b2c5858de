/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples of a process's memory, however long it is watched: when there are too many, each two
 * neighbours become one, the larger, so that no peak is lost and memory use is bounded.
 */
#ifndef LEAKTOOLS_PLOT_MEMORY_HISTORY_H
#define LEAKTOOLS_PLOT_MEMORY_HISTORY_H

#include "plot/memory/process_memory.h"

#include <stddef.h>

/* More than there are pixels across a plot. */
#define MEMORY_HISTORY_MAX 8192

struct memory_history {
	struct memory_sample samples[MEMORY_HISTORY_MAX];
	size_t nr;
	struct memory_sample first; /* of all, and the last one */
	struct memory_sample last;
};

/* Adds a sample; later ones come later. */
void memory_history_add(struct memory_history *history, const struct memory_sample *sample);

#endif
