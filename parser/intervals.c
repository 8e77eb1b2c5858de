/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/intervals.h"

#include "unwind/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hostile file may be all marks. */
#define MAX_INTERVALS 100000

/* A stack in an interval. */
struct tally_key {
	uint32_t interval, stack_id;
};

struct tally {
	struct tally_key key;
	int64_t blocks, bytes;
	UT_hash_handle hh;
};

struct intervals {
	struct interval *list; /* the last one is open */
	size_t nr, nr_allocated;
	struct tally *tallies;
	struct interval_change *changes;
	uint64_t from_ns, to_ns; /* since the start, with @has_range */
	bool has_range, failed;
};

struct intervals *intervals_create(void)
{
	return calloc(1, sizeof(struct intervals));
}

void intervals_destroy(struct intervals *intervals)
{
	struct tally *tally, *next;

	if (!intervals)
		return;
	HASH_ITER (hh, intervals->tallies, tally, next) {
		HASH_DEL(intervals->tallies, tally);
		free(tally);
	}
	free(intervals->list);
	free(intervals->changes);
	free(intervals);
}

void intervals_set_range(struct intervals *intervals, uint64_t from_ns, uint64_t to_ns)
{
	intervals->has_range = true;
	intervals->from_ns = from_ns;
	intervals->to_ns = to_ns;
}

static void open_interval(struct intervals *intervals, uint64_t begin_ns, uint64_t mark)
{
	struct interval *grown = intervals->list;

	if (intervals->nr == intervals->nr_allocated) {
		intervals->nr_allocated = 2 * intervals->nr_allocated + 16;
		grown = reallocarray(grown, intervals->nr_allocated, sizeof(*grown));
		if (!grown) {
			intervals->failed = true;
			intervals->nr_allocated = intervals->nr;
			return;
		}
		intervals->list = grown;
	}
	intervals->list[intervals->nr++] = (struct interval){
		.begin_ns = begin_ns,
		.end_ns = UINT64_MAX,
		.begin_mark = mark,
	};
}

static uint64_t time_after(uint64_t start_ns, uint64_t ns)
{
	return ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + ns;
}

void intervals_begin(struct intervals *intervals, uint64_t time_ns)
{
	if (intervals->nr)
		return;
	if (!intervals->has_range) {
		open_interval(intervals, time_ns, 0);
		return;
	}
	open_interval(intervals, time_after(time_ns, intervals->from_ns), 0);
	if (intervals->nr)
		intervals->list[0].end_ns = time_after(time_ns, intervals->to_ns);
}

void intervals_mark(struct intervals *intervals, uint64_t time_ns, uint64_t number)
{
	if (intervals->has_range || intervals->nr >= MAX_INTERVALS)
		return;
	/* Before the first event nothing can have changed. */
	if (intervals->nr) {
		struct interval *last = &intervals->list[intervals->nr - 1];

		last->end_ns = time_ns > last->begin_ns ? time_ns : last->begin_ns;
		last->end_mark = number;
		time_ns = last->end_ns;
	}
	open_interval(intervals, time_ns, number);
}

/* Where @time_ns is in; NULL: in none. Changes come in order, or a little late. */
static struct interval *find_interval(const struct intervals *intervals, uint64_t time_ns)
{
	for (size_t i = intervals->nr; i-- > 0;)
		if (time_ns >= intervals->list[i].begin_ns)
			return time_ns < intervals->list[i].end_ns ? &intervals->list[i] : NULL;
	/* What is older than the first event was told of by a late one. */
	return intervals->nr && !intervals->has_range ? &intervals->list[0] : NULL;
}

void intervals_change(struct intervals *intervals, const struct heap_change *change)
{
	const struct heap_block *block = &change->block;
	struct interval *interval = find_interval(intervals, change->op.time_ns);
	uint64_t bytes = block->size_known ? block->size_bytes : 0;
	struct tally_key key;
	struct tally *tally;

	if (!interval)
		return;
	key = (struct tally_key){(uint32_t)(interval - intervals->list), block->allocated.stack_id};
	HASH_FIND(hh, intervals->tallies, &key, sizeof(key), tally);
	if (!tally) {
		tally = calloc(1, sizeof(*tally));
		if (!tally) {
			intervals->failed = true;
			return;
		}
		tally->key = key;
		HASH_ADD(hh, intervals->tallies, key, sizeof(key), tally);
		if (!hash_added(tally)) {
			free(tally);
			intervals->failed = true;
			return;
		}
	}
	/* Sizes are what a hostile file says: sums may wrap, nothing depends on them. */
	if (!change->enters)
		bytes = -bytes;
	tally->blocks += change->enters ? 1 : -1;
	tally->bytes = (int64_t)((uint64_t)tally->bytes + bytes);
	interval->blocks += change->enters ? 1 : -1;
	interval->bytes = (int64_t)((uint64_t)interval->bytes + bytes);
}

/* By interval; within one the most bytes first, then the most blocks. */
static int compare_tallies(const struct tally *a, const struct tally *b)
{
	if (a->key.interval != b->key.interval)
		return a->key.interval < b->key.interval ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->blocks != b->blocks)
		return a->blocks > b->blocks ? -1 : 1;
	return a->key.stack_id < b->key.stack_id ? -1 : a->key.stack_id > b->key.stack_id;
}

int intervals_finish(struct intervals *intervals, uint64_t end_ns, const struct interval **ret,
		     size_t *ret_nr)
{
	struct interval_change *change;
	struct tally *tally, *next;

	if (intervals->nr && intervals->list[intervals->nr - 1].end_ns > end_ns)
		intervals->list[intervals->nr - 1].end_ns = end_ns;
	free(intervals->changes);
	intervals->changes = calloc(HASH_COUNT(intervals->tallies) + 1, sizeof(*change));
	if (!intervals->changes || intervals->failed)
		return -ENOMEM;
	change = intervals->changes;
	HASH_SORT(intervals->tallies, compare_tallies);
	HASH_ITER (hh, intervals->tallies, tally, next) {
		struct interval *interval = &intervals->list[tally->key.interval];

		if (!tally->blocks && !tally->bytes)
			continue;
		if (!interval->changes)
			interval->changes = change;
		interval->nr_changes++;
		*change++ =
			(struct interval_change){tally->key.stack_id, tally->blocks, tally->bytes};
	}
	*ret = intervals->list;
	*ret_nr = intervals->nr;
	return 0;
}
