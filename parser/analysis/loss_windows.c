/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/loss_windows.h"

#include "common/partition_point.h"

#include <stdlib.h>

#define NR_GAPS (LOSS_MAX_WINDOWS - 1) /* in a full list */

struct loss_windows {
	uint64_t last_ns[LOSS_NR_RINGS][LOSS_MAX_CPUS]; /* 0: no record yet */
	struct loss_window list[LOSS_MAX_WINDOWS];
	size_t nr;
};

struct loss_windows *loss_windows_create(void)
{
	return calloc(1, sizeof(struct loss_windows));
}

void loss_windows_destroy(struct loss_windows *windows)
{
	free(windows);
}

void loss_windows_note(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		       uint64_t time_ns)
{
	if (cpu < LOSS_MAX_CPUS && time_ns)
		windows->last_ns[ring][cpu] = time_ns;
}

/* Extends @window over @other. */
static void join(struct loss_window *window, const struct loss_window *other)
{
	if (other->start_ns < window->start_ns)
		window->start_ns = other->start_ns;
	if (other->end_ns > window->end_ns)
		window->end_ns = other->end_ns;
	window->lost += other->lost;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Joins the closest windows of a full list, at least a quarter of them: one at a time would be
 * slow. If all distances are equal, every other window is joined to the one before.
 */
static void join_closest(struct loss_windows *windows)
{
	uint64_t gaps_ns[NR_GAPS], limit_ns;
	size_t nr = 1;
	bool joined = false;

	for (size_t i = 0; i < NR_GAPS; i++)
		gaps_ns[i] = windows->list[i + 1].start_ns - windows->list[i].end_ns;
	qsort(gaps_ns, NR_GAPS, sizeof(gaps_ns[0]), compare_u64);
	limit_ns = gaps_ns[NR_GAPS / 2];
	for (size_t i = 1; i < LOSS_MAX_WINDOWS; i++) {
		struct loss_window *last = &windows->list[nr - 1];
		uint64_t gap_ns = windows->list[i].start_ns - last->end_ns;

		joined = gap_ns < limit_ns || (gap_ns == limit_ns && !joined);
		if (joined)
			join(last, &windows->list[i]);
		else
			windows->list[nr++] = windows->list[i];
	}
	windows->nr = nr;
}

/*
 * LOST records come in time order, so the windows that @window touches are the last ones.
 */
static void append(struct loss_windows *windows, struct loss_window window)
{
	while (windows->nr > 0 && windows->list[windows->nr - 1].end_ns >= window.start_ns)
		join(&window, &windows->list[--windows->nr]);
	if (windows->nr == LOSS_MAX_WINDOWS)
		join_closest(windows);
	windows->list[windows->nr++] = window;
}

void loss_windows_add(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		      uint64_t time_ns, uint64_t lost)
{
	struct loss_window window = {
		.start_ns = cpu < LOSS_MAX_CPUS ? windows->last_ns[ring][cpu] : 0,
		.end_ns = time_ns,
		.lost = lost,
	};

	loss_windows_note(windows, ring, cpu, time_ns);
	if (!lost)
		return;
	if (window.start_ns > time_ns) /* out of order: nothing but the end is known */
		window.start_ns = 0;
	append(windows, window);
}

void loss_windows_add_gap(struct loss_windows *windows, uint64_t start_ns, uint64_t end_ns)
{
	append(windows, (struct loss_window){start_ns, end_ns, LOSS_UNKNOWN});
}

bool loss_windows_overlap(const struct loss_windows *windows, uint64_t from_ns, uint64_t to_ns)
{
	/* The first window that ends after @from_ns. */
	size_t first = partition_point(windows->nr, i, windows->list[i].end_ns <= from_ns);

	return first < windows->nr && windows->list[first].start_ns < to_ns;
}

const struct loss_window *loss_windows_list(const struct loss_windows *windows, size_t *ret_nr)
{
	*ret_nr = windows->nr;
	return windows->list;
}
