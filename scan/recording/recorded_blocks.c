/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/recording/recorded_blocks.h"

#include "common/scope.h"
#include "scan/report/holders.h"

#include <errno.h>
#include <stdlib.h>

/* Whether the process of the scan has allocated this block of memory. */
static bool is_own(const struct analysis *analysis, const struct heap_block *block, pid_t pid)
{
	const struct heap_op *op = &block->allocated;

	return op->pid == pid && !block->inherited && !probe_schema_is_resource(op->schema) &&
	       !heap_tracker_life(analysis->heaps, pid, op->time_ns).end_ns;
}

/* *@ret_nr is the scan's block, or HEAP_NONE. */
static enum reach_class class_of(const struct scan *scan, const struct heap_block *block,
				 uint32_t *ret_nr)
{
	const struct heap *heap = &scan->heap;
	const struct heap_segment *segment = heap_map_segment(&heap->map, block->address);
	const struct lost_block *lost;
	enum reach_class class;
	uint64_t offset, usable_bytes;
	uint32_t nr;

	*ret_nr = HEAP_NONE;
	if (!heap->is_whole)
		return REACH_NOT_SCANNED;
	if (!segment)
		return snapshot_region(scan->snapshot, block->address) ? REACH_NOT_SCANNED
								       : REACH_GONE;
	nr = heap_find_block(heap, block->address, &offset);
	if (nr == HEAP_NONE)
		return REACH_GONE;
	usable_bytes = heap_block_bytes(heap, nr);
	if (usable_bytes - offset < block->size_bytes)
		return REACH_GONE;
	/*
	 * A block that lies over it: mostly a later one. But a function may give out a part of what
	 * malloc() gave it (sqlite3_malloc()). Mappings of their own may be much too large.
	 */
	if (offset || (!segment->mapped_block && !reach_fits(block, usable_bytes)))
		return REACH_NOT_SCANNED;
	*ret_nr = nr;
	class = scan_class_of(scan, nr, &lost);
	/* With such an allocator, pointers to starts prove no more than others. */
	return heap->is_traced && class == REACH_POSSIBLE ? REACH_POINTED : class;
}

int recorded_blocks_list(struct analysis *analysis, pid_t pid, struct traced_blocks *ret)
{
	const struct heap_block *held;
	size_t nr;
	int err = heap_tracker_held(analysis->heaps, &held, &nr);

	if (err)
		return err;
	ret->blocks = calloc(nr + 1, sizeof(*ret->blocks));
	if (!ret->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		if (is_own(analysis, &held[i], pid) && held[i].size_known)
			ret->blocks[ret->nr++] =
				(struct traced_block){held[i].address, held[i].size_bytes};
	return 0;
}

struct asked {
	struct reach *reach;
	pid_t pid;
};

static int on_name(void *context, unsigned number, const char *name)
{
	struct asked *asked = context;

	return reach_name_holder(asked->reach, asked->pid, number, name);
}

int recorded_blocks_ask(struct analysis *analysis, struct scan_report *report)
{
	struct asked asked = {reach_create(), report->scan->snapshot->pid};
	_cleanup_free_ enum reach_class *classes = NULL;
	_cleanup_free_ uint32_t *blocks = NULL;
	_cleanup_free_ unsigned *holders = NULL;
	const struct heap_block *held;
	size_t nr;
	int err = asked.reach ? heap_tracker_held(analysis->heaps, &held, &nr) : -ENOMEM;

	if (err) {
		reach_destroy(asked.reach);
		return err;
	}
	reach_destroy(analysis->reach);
	analysis->reach = asked.reach;
	classes = calloc(nr + 1, sizeof(*classes));
	blocks = calloc(nr + 1, sizeof(*blocks));
	holders = calloc(nr + 1, sizeof(*holders));
	if (!classes || !blocks || !holders)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		blocks[i] = HEAP_NONE;
		classes[i] = is_own(analysis, &held[i], asked.pid)
				     ? class_of(report->scan, &held[i], &blocks[i])
				     : REACH_NOT_SCANNED;
	}
	if (report->scan->unseen[0])
		err = reach_add_unseen(asked.reach, asked.pid, UINT64_MAX, report->scan->unseen);
	if (err)
		return err;
	err = holders_name(report, blocks, nr, on_name, &asked, holders);
	for (size_t i = 0; i < nr && !err; i++)
		if (classes[i] != REACH_NOT_SCANNED)
			err = reach_say(asked.reach, &held[i], classes[i], holders[i]);
	return err;
}
