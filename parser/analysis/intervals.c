/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/intervals.h"

#include "common/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stack in the open interval. */
struct tally {
	uint32_t stack_id;
	int64_t blocks, bytes;
	UT_hash_handle hh;
};

struct intervals {
	struct interval_observer observer;
	struct interval
		open; /* end_ns is UINT64_MAX if only a mark or the end of the recording ends it */
	struct tally *tallies;
	uint64_t from_ns, to_ns; /* since the start; if @has_range */
	uint64_t every_ns;	 /* 0: between marks */
	bool has_range, has_begun, failed;
	char begin_text[PROBE_TEXT_BYTES]; /* of the open interval's mark */
};

struct intervals *intervals_create(const struct interval_observer *observer)
{
	struct intervals *intervals = calloc(1, sizeof(*intervals));

	if (intervals)
		intervals->observer = *observer;
	return intervals;
}

static void drop_tallies(struct intervals *intervals)
{
	struct tally *tally, *next;

	HASH_ITER (hh, intervals->tallies, tally, next) {
		HASH_DEL(intervals->tallies, tally);
		free(tally);
	}
}

void intervals_destroy(struct intervals *intervals)
{
	if (!intervals)
		return;
	drop_tallies(intervals);
	free(intervals);
}

void intervals_set_range(struct intervals *intervals, uint64_t from_ns, uint64_t to_ns)
{
	intervals->has_range = true;
	intervals->from_ns = from_ns;
	intervals->to_ns = to_ns;
}

void intervals_set_length(struct intervals *intervals, uint64_t every_ns)
{
	intervals->every_ns = every_ns;
}

static uint64_t time_after(uint64_t start_ns, uint64_t ns)
{
	return ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + ns;
}

static void open_interval(struct intervals *intervals, uint64_t begin_ns)
{
	intervals->open = (struct interval){
		.begin_ns = begin_ns,
		.end_ns = intervals->every_ns ? time_after(begin_ns, intervals->every_ns)
					      : UINT64_MAX,
	};
}

/* Sorts by bytes, then by blocks, descending. */
static int compare_tallies(const struct tally *a, const struct tally *b)
{
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->blocks != b->blocks)
		return a->blocks > b->blocks ? -1 : 1;
	return a->stack_id < b->stack_id ? -1 : a->stack_id > b->stack_id;
}

/* Reports the open interval, which ends at @end_ns. */
static void close_interval(struct intervals *intervals, uint64_t end_ns,
			   const struct interval_mark *mark)
{
	struct interval *interval = &intervals->open;
	struct interval_change *changes =
		calloc(HASH_COUNT(intervals->tallies) + 1, sizeof(*changes));
	struct tally *tally, *next;

	interval->end_ns = end_ns > interval->begin_ns ? end_ns : interval->begin_ns;
	if (mark)
		interval->end_mark = *mark;
	if (!changes) {
		intervals->failed = true;
		return;
	}
	HASH_SORT(intervals->tallies, compare_tallies);
	HASH_ITER (hh, intervals->tallies, tally, next)
		if (tally->blocks || tally->bytes)
			changes[interval->nr_changes++] = (struct interval_change){
				tally->stack_id, tally->blocks, tally->bytes};
	interval->changes = changes;
	intervals->observer.on_interval(intervals->observer.context, interval);
	free(changes);
	drop_tallies(intervals);
}

/* Ends the fixed-length intervals that are over at @time_ns. */
static void advance(struct intervals *intervals, uint64_t time_ns)
{
	/* If a file has times near the maximum, the last interval stays open. */
	while (intervals->every_ns && intervals->open.end_ns <= time_ns &&
	       intervals->open.end_ns != UINT64_MAX) {
		uint64_t end_ns = intervals->open.end_ns, idle;

		close_interval(intervals, end_ns, NULL);
		/* Consecutive idle intervals are reported as one. */
		idle = (time_ns - end_ns) / intervals->every_ns * intervals->every_ns;
		if (idle > intervals->every_ns) {
			open_interval(intervals, end_ns);
			end_ns += idle;
			close_interval(intervals, end_ns, NULL);
		}
		open_interval(intervals, end_ns);
	}
}

void intervals_begin(struct intervals *intervals, uint64_t time_ns)
{
	const struct interval_mark mark = intervals->open.begin_mark;

	if (intervals->has_begun)
		return;
	intervals->has_begun = true;
	open_interval(intervals, time_ns);
	intervals->open.begin_mark = mark;
	if (!intervals->has_range)
		return;
	intervals->open.begin_ns = time_after(time_ns, intervals->from_ns);
	intervals->open.end_ns = time_after(time_ns, intervals->to_ns);
}

/* Begins an interval at the mark. */
static void begin_at_mark(struct intervals *intervals, const struct interval_mark *mark)
{
	intervals->open.begin_mark = *mark;
	if (!mark->text)
		return;
	snprintf(intervals->begin_text, sizeof(intervals->begin_text), "%s", mark->text);
	intervals->open.begin_mark.text = intervals->begin_text;
}

void intervals_mark(struct intervals *intervals, uint64_t time_ns, const struct interval_mark *mark)
{
	if (intervals->has_range || intervals->every_ns)
		return;
	/* Nothing can have changed before the first event. */
	if (!intervals->has_begun) {
		begin_at_mark(intervals, mark);
		return;
	}
	if (time_ns < intervals->open.begin_ns)
		time_ns = intervals->open.begin_ns;
	close_interval(intervals, time_ns, mark);
	open_interval(intervals, time_ns);
	begin_at_mark(intervals, mark);
}

static struct tally *get_tally(struct intervals *intervals, uint32_t stack_id)
{
	struct tally *tally;

	HASH_FIND(hh, intervals->tallies, &stack_id, sizeof(stack_id), tally);
	if (tally)
		return tally;
	tally = calloc(1, sizeof(*tally));
	if (!tally)
		return NULL;
	tally->stack_id = stack_id;
	HASH_ADD(hh, intervals->tallies, stack_id, sizeof(stack_id), tally);
	if (hash_added(tally))
		return tally;
	free(tally);
	return NULL;
}

void intervals_change(struct intervals *intervals, const struct heap_change *change)
{
	const struct heap_block *block = &change->block;
	struct interval *open = &intervals->open;
	uint64_t time_ns = change->op.time_ns, bytes = block->size_known ? block->size_bytes : 0;
	struct tally *tally;

	intervals_begin(intervals, time_ns);
	advance(intervals, time_ns);
	if (intervals->has_range && (time_ns < open->begin_ns || time_ns >= open->end_ns))
		return;
	tally = get_tally(intervals, block->allocated.stack_id);
	if (!tally) {
		intervals->failed = true;
		return;
	}
	/* A hostile file may give any size. Sums may wrap; nothing depends on them. */
	if (!change->enters)
		bytes = -bytes;
	tally->blocks += change->enters ? 1 : -1;
	tally->bytes = (int64_t)((uint64_t)tally->bytes + bytes);
	open->blocks += change->enters ? 1 : -1;
	open->bytes = (int64_t)((uint64_t)open->bytes + bytes);
}

int intervals_finish(struct intervals *intervals, uint64_t end_ns)
{
	if (intervals->has_begun) {
		advance(intervals, end_ns);
		close_interval(intervals,
			       end_ns < intervals->open.end_ns ? end_ns : intervals->open.end_ns,
			       NULL);
	}
	return intervals->failed ? -ENOMEM : 0;
}
