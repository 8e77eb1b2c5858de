/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/formats/mark_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void interval_deinit(struct marked_interval *interval)
{
	free(interval->begin);
	free(interval->end);
	free(interval->changes);
}

/* Stores "mark-3", or the mark's text; NULL: it is none. Returns 0 or -ENOMEM. */
static int name_mark(const struct interval_mark *mark, char **ret)
{
	if (mark->text)
		*ret = strdup(mark->text);
	else if (!mark->number)
		return 0;
	else if (asprintf(ret, "mark-%" PRIu64, mark->number) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

static int copy_interval(const struct interval *interval, struct marked_interval *ret)
{
	size_t nr = interval->nr_changes < MARK_CHANGES_MAX_STACKS ? interval->nr_changes
								   : MARK_CHANGES_MAX_STACKS;

	*ret = (struct marked_interval){
		.begin_ns = interval->begin_ns,
		.end_ns = interval->end_ns,
		.bytes = interval->bytes,
		.blocks = interval->blocks,
		.changes = calloc(nr + 1, sizeof(*ret->changes)),
		.nr_changes = nr,
	};
	if (!ret->changes)
		return -ENOMEM;
	memcpy(ret->changes, interval->changes, nr * sizeof(*ret->changes));
	return name_mark(&interval->begin_mark, &ret->begin) ||
			       name_mark(&interval->end_mark, &ret->end)
		       ? -ENOMEM
		       : 0;
}

static void on_interval(void *context, const struct interval *interval)
{
	struct mark_changes *changes = context;

	if (changes->nr == MARK_CHANGES_MAX) {
		interval_deinit(&changes->list[0]);
		memmove(changes->list, changes->list + 1, --changes->nr * sizeof(*changes->list));
	}
	if (copy_interval(interval, &changes->list[changes->nr++]))
		changes->failed = true;
}

int mark_changes_init(struct mark_changes *changes, const struct size_range *size)
{
	const struct interval_observer observer = {changes, on_interval};

	*changes = (struct mark_changes){
		.intervals = intervals_create(&observer),
		.size = size,
		.list = calloc(MARK_CHANGES_MAX, sizeof(*changes->list)),
	};
	return changes->intervals && changes->list ? 0 : -ENOMEM;
}

void mark_changes_deinit(struct mark_changes *changes)
{
	intervals_destroy(changes->intervals);
	for (size_t i = 0; i < changes->nr; i++)
		interval_deinit(&changes->list[i]);
	free(changes->list);
	*changes = (struct mark_changes){0};
}

void mark_changes_change(struct mark_changes *changes, const struct heap_change *change)
{
	const struct heap_block *block = &change->block;

	if (!changes->size ||
	    (block->size_known && size_range_has(changes->size, block->size_bytes)))
		intervals_change(changes->intervals, change);
}

int mark_changes_finish(struct mark_changes *changes, uint64_t end_ns)
{
	int err = intervals_finish(changes->intervals, end_ns);

	return changes->failed ? -ENOMEM : err;
}
