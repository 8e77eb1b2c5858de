/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/windows/observed_time.h"

#include "common/partition_point.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_WINDOWS 64
#define MEAN_PACE     1000
#define MAX_PACE      10000

void observed_time_deinit(struct observed_time *time)
{
	free(time->windows);
	*time = (struct observed_time){0};
}

/* Merges each two neighbours. None is open. */
static void merge(struct observed_time *time)
{
	struct observed_window *windows = time->windows;
	size_t nr = time->nr / 2;

	for (size_t i = 0; i < nr; i++) {
		const struct observed_window *second = &windows[2 * i + 1];
		struct observed_window both = windows[2 * i];

		both.close_ns = second->close_ns;
		both.observed_ns += second->observed_ns;
		both.paced_ns += second->paced_ns;
		windows[i] = both;
	}
	if (time->nr % 2)
		windows[nr++] = windows[time->nr - 1];
	time->nr = nr;
}

static int reserve(struct observed_time *time)
{
	size_t capacity = time->capacity ? 2 * time->capacity : FIRST_WINDOWS;
	struct observed_window *grown;

	if (time->nr < time->capacity)
		return 0;
	if (time->windows && time->nr == OBSERVED_MAX_WINDOWS) {
		merge(time);
		return 0;
	}
	grown = reallocarray(time->windows, capacity, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	time->windows = grown;
	time->capacity = capacity;
	return 0;
}

int observed_time_open(struct observed_time *time, uint64_t time_ns)
{
	const struct observed_window *last = time->nr ? &time->windows[time->nr - 1] : NULL;

	if (time->is_open)
		return 0;
	if (last && time_ns < last->close_ns)
		time_ns = last->close_ns;
	if (reserve(time) || !time->windows)
		return -ENOMEM;
	last = time->nr ? &time->windows[time->nr - 1] : NULL;
	time->windows[time->nr++] = (struct observed_window){
		.open_ns = time_ns,
		.close_ns = time_ns,
		.before_ns = last ? last->before_ns + last->observed_ns : 0,
		.paced_before_ns = last ? last->paced_before_ns + last->paced_ns : 0,
	};
	time->nr_opened++;
	time->is_open = true;
	return 0;
}

/* Counts window @i by @pace, if that is known. */
static void set_pace(struct observed_time *time, size_t i, uint64_t pace)
{
	struct observed_window *window = &time->windows[i];
	const struct observed_window *before = i ? window - 1 : NULL;

	window->paced_before_ns = before ? before->paced_before_ns + before->paced_ns : 0;
	window->paced_ns = pace ? (uint64_t)((double)window->observed_ns * (double)pace / MEAN_PACE)
				: window->observed_ns;
}

void observed_time_close(struct observed_time *time, uint64_t time_ns, uint64_t pace)
{
	struct observed_window *last;

	if (!time->is_open)
		return;
	last = &time->windows[time->nr - 1];
	if (time_ns > last->open_ns)
		last->close_ns = time_ns;
	last->observed_ns = last->close_ns - last->open_ns;
	/* No more than a recording can mean: it may be made up. */
	if (pace > MAX_PACE)
		pace = MAX_PACE;
	/* The program may have begun to work in the window before. */
	if (pace && time->is_unpaced && time->nr > 1)
		set_pace(time, time->nr - 2, pace);
	set_pace(time, time->nr - 1, pace);
	time->has_paces |= pace != 0;
	time->is_unpaced = pace == 0;
	time->is_open = false;
}

int observed_time_begin_shut(struct observed_time *time, uint64_t time_ns)
{
	int err;

	if (time->nr)
		return 0;
	/* A window without a length, which is none. */
	err = observed_time_open(time, time_ns);
	observed_time_close(time, time_ns, 0);
	time->nr_opened = 0;
	return err;
}

size_t observed_time_nr_before(const struct observed_time *time, uint64_t time_ns)
{
	return partition_point(time->nr, i, time->windows[i].open_ns <= time_ns);
}

/* The observed time before @time_ns; with @paced, by the program's pace. */
static uint64_t time_before(const struct observed_time *time, uint64_t time_ns, bool paced)
{
	size_t low = observed_time_nr_before(time, time_ns);
	const struct observed_window *window;
	uint64_t before_ns, within_ns;

	if (!time->nr)
		return time_ns;
	if (low == 0)
		return 0;
	window = &time->windows[low - 1];
	before_ns = paced ? window->paced_before_ns : window->before_ns;
	within_ns = paced ? window->paced_ns : window->observed_ns;
	/* The pace of an open window is not known yet. */
	if (time->is_open && low == time->nr)
		return before_ns + (time_ns - window->open_ns);
	if (time_ns >= window->close_ns)
		return before_ns + within_ns;
	return before_ns + (uint64_t)((double)(time_ns - window->open_ns) * (double)within_ns /
				      (double)(window->close_ns - window->open_ns));
}

uint64_t observed_time_before(const struct observed_time *time, uint64_t time_ns)
{
	return time_before(time, time_ns, false);
}

uint64_t observed_time_paced_before(const struct observed_time *time, uint64_t time_ns)
{
	return time_before(time, time_ns, true);
}

bool observed_time_has_gap(const struct observed_time *time, uint64_t from_ns, uint64_t to_ns)
{
	if (!time->nr || to_ns <= from_ns)
		return false;
	return observed_time_before(time, to_ns) - observed_time_before(time, from_ns) <
	       to_ns - from_ns;
}
