/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/memory/memory_history.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void halve(struct memory_history *history)
{
	for (size_t i = 0; i < history->nr / 2; i++) {
		const struct memory_sample *a = &history->samples[2 * i];
		const struct memory_sample *b = &history->samples[2 * i + 1];

		history->samples[i] = (struct memory_sample){
			.time_ns = a->time_ns,
			.rss_bytes = larger(a->rss_bytes, b->rss_bytes),
			.heap_bytes = larger(a->heap_bytes, b->heap_bytes),
		};
	}
	history->nr /= 2;
}

void memory_history_add(struct memory_history *history, const struct memory_sample *sample)
{
	if (history->nr == 0)
		history->first = *sample;
	if (history->nr == MEMORY_HISTORY_MAX)
		halve(history);
	history->samples[history->nr++] = *sample;
	history->last = *sample;
}
