/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/analysis/scan.h"

#include "common/partition_point.h"
#include "common/quantity.h"
#include "scan/threads/thread_team.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Less is read by one thread. */
#define MIN_TEAM_BYTES (16u << 20)

static void say_unread(struct scan *scan, const struct unread_memory *unread)
{
	const struct scan_region *region = snapshot_region(scan->snapshot, unread->address);

	snprintf(scan->why_not, sizeof(scan->why_not),
		 "%s of its memory could not be read%s, first in the mapping of %s",
		 quantity_bytes((double)unread->bytes).text,
		 unread->is_late ? " in time (--pause-limit)" : "",
		 region && region->path[0] ? region->path : "no file");
}

static void add_unseen_text(struct scan *scan, const char *text)
{
	size_t len = strlen(scan->unseen);

	snprintf(scan->unseen + len, sizeof(scan->unseen) - len, "%s%s", len ? ", " : "", text);
}

static void add_unseen(struct scan *scan, size_t nr, const char *one, const char *many)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %s", quantity_count(nr).text,
		 quantity_word(nr, one, many));
	if (nr)
		add_unseen_text(scan, text);
}

static void name_unseen(struct scan *scan)
{
	const struct snapshot *snapshot = scan->snapshot;
	size_t nr_aio = 0, nr_rings = 0;

	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		nr_aio += strncmp(region->path, "/[aio]", 6) == 0;
		nr_rings += region->file_offset == IORING_OFF_SQES &&
			    strcmp(region->path, "anon_inode:[io_uring]") == 0;
	}
	/* A program may close a ring's descriptor, or not map what is in its own memory. */
	if (nr_rings < snapshot->unseen.nr_io_urings)
		nr_rings = snapshot->unseen.nr_io_urings;
	add_unseen(scan, snapshot->unseen.nr_pipes, "pipe with unread bytes",
		   "pipes with unread bytes");
	add_unseen(scan, snapshot->unseen.nr_sockets, "socket with unread bytes",
		   "sockets with unread bytes");
	add_unseen(scan, nr_rings, "io_uring", "io_urings");
	add_unseen(scan, nr_aio, "AIO context", "AIO contexts");
	add_unseen(scan, snapshot->unseen.nr_fuse, "FUSE device", "FUSE devices");
	add_unseen(scan, snapshot->unseen.nr_displays, "display device", "display devices");
	add_unseen(scan, snapshot->unseen.nr_usb, "USB device", "USB devices");
	if (snapshot->unseen.pipes_and_sockets)
		add_unseen_text(scan, "pipes and sockets");
	if (snapshot->unseen.own_descriptors)
		add_unseen_text(scan, "threads' own descriptors");
	if (snapshot->unseen.timers)
		add_unseen_text(scan, "timers");
}

/* What must be so that a block may be called lost (docs/reachability.md). */
static void decide(struct scan *scan, const struct lost_list *before)
{
	const struct snapshot *snapshot = scan->snapshot;
	const struct heap *heap = &scan->heap;

	if (!heap->allocator)
		snprintf(scan->why_not, sizeof(scan->why_not),
			 "no heap of glibc's malloc was found, and leakscan knows no other");
	else if (!heap->is_whole)
		snprintf(scan->why_not, sizeof(scan->why_not), "%s", heap->why_not);
	else if (snapshot->unread.bytes)
		say_unread(scan, &snapshot->unread);
	else if (snapshot->has_other_users)
		snprintf(scan->why_not, sizeof(scan->why_not),
			 "another process uses its memory, and was not stopped");
	else if (snapshot->unread_pointers)
		snprintf(scan->why_not, sizeof(scan->why_not),
			 "not all that the kernel keeps for it could be read: %s",
			 snapshot->unread_pointers);
	else if (snapshot->is_core)
		snprintf(scan->why_not, sizeof(scan->why_not),
			 "a core file is one moment, and no second one confirms it");
	else if (!before)
		snprintf(scan->why_not, sizeof(scan->why_not), "there is one snapshot only");
	else
		scan->may_say_lost = true;
}

static bool was_lost(const struct lost_list *before, uint64_t address, uint64_t size_bytes)
{
	size_t first = partition_point(before->nr, i, before->blocks[i].address < address);

	return first < before->nr && before->blocks[first].address == address &&
	       before->blocks[first].size_bytes == size_bytes;
}

/* Blocks that had a holder, or did not exist, in the snapshot before. */
static int mark_unconfirmed(struct scan *scan, const struct lost_list *before)
{
	uint32_t nr_blocks = scan->heap.map.nr_blocks, *blocks = NULL;
	size_t nr = 0, capacity = 0;
	int err;

	for (uint32_t i = marking_next(&scan->marking, 0); i < nr_blocks;
	     i = marking_next(&scan->marking, i + 1)) {
		struct heap_block_view view;

		if (!marking_is_lost(&scan->marking, i))
			continue;
		heap_block_view(&scan->heap, i, &view);
		if (was_lost(before, view.address, view.size_bytes))
			continue;
		if (nr == capacity) {
			uint32_t *grown;

			capacity = capacity ? capacity * 2 : 256;
			grown = reallocarray(blocks, capacity, sizeof(*blocks));
			if (!grown) {
				free(blocks);
				return -ENOMEM;
			}
			blocks = grown;
		}
		blocks[nr++] = i;
	}
	err = nr ? marking_mark_unconfirmed(&scan->marking, blocks, nr) : 0;
	free(blocks);
	return err;
}

enum reach_class scan_class_of(const struct scan *scan, uint32_t block,
			       const struct lost_block **ret_lost)
{
	uint8_t state = scan->marking.states[block];

	*ret_lost = NULL;
	if (state & MARK_HELD)
		return scan->heap.is_traced ? REACH_POINTED : REACH_HELD;
	if (state & MARK_POSSIBLE)
		return REACH_POSSIBLE;
	if (state & MARK_WEAK)
		return REACH_WEAK;
	*ret_lost = lost_graph_find(&scan->lost, block);
	if (!scan->may_say_lost || !*ret_lost)
		return REACH_UNKNOWN;
	if (scan->heap.is_traced)
		return REACH_NO_HOLDER;
	switch (lost_block_kind(*ret_lost)) {
	case LOST_CYCLE:
		return REACH_CYCLE;
	case LOST_THROUGH:
		return REACH_THROUGH;
	default:
		return REACH_LOST;
	}
}

static void count(struct scan *scan)
{
	/* By the number of the bit of a mark. */
	const enum reach_class classes[MARK_NR] = {scan->heap.is_traced ? REACH_POINTED
									: REACH_HELD,
						   REACH_POSSIBLE, REACH_WEAK, REACH_UNKNOWN};
	const struct marking *marking = &scan->marking;
	const struct lost_block *lost;

	for (int i = 0; i < MARK_NR; i++) {
		scan->totals[classes[i]].nr += marking->totals[i].nr;
		scan->totals[classes[i]].bytes += marking->totals[i].bytes;
	}
	for (size_t i = 0; i < scan->lost.nr; i++) {
		uint32_t block = scan->lost.blocks[i].block;
		struct scan_class_total *total = &scan->totals[scan_class_of(scan, block, &lost)];

		total->nr++;
		total->bytes += heap_block_bytes(&scan->heap, block);
	}
	for (uint32_t i = marking_next(marking, 0); i < scan->heap.map.nr_blocks;
	     i = marking_next(marking, i + 1))
		scan->nr_hidden += marking_hidden_kind(marking, i) != HIDDEN_NOT;
}

/* What is known from the snapshot alone: two tasks for two threads. */
struct reading {
	struct heap *heap;
	const struct snapshot *snapshot;
	const struct traced_source *traced;
	struct thread_stacks stacks;
	int heap_err, stacks_err;
	atomic_flag has_stacks;
};

static void read_part(void *context, unsigned thread)
{
	struct reading *reading = context;

	if (thread == 0)
		reading->heap_err = heap_read(reading->heap, reading->snapshot, reading->traced);
	if (!atomic_flag_test_and_set(&reading->has_stacks))
		reading->stacks_err = thread_stacks_find(&reading->stacks, reading->snapshot);
}

static int read_snapshot(struct scan *scan, const struct traced_source *traced)
{
	struct reading reading = {.heap = &scan->heap,
				  .snapshot = scan->snapshot,
				  .traced = traced,
				  .has_stacks = ATOMIC_FLAG_INIT};
	bool is_small = scan->snapshot->copied_bytes < MIN_TEAM_BYTES;
	int err;

	thread_team_run(is_small || thread_team_size() == 1 ? 1 : 2, read_part, &reading);
	err = reading.heap_err ? reading.heap_err : reading.stacks_err;
	if (!err)
		err = roots_init(&scan->roots, &scan->heap, &reading.stacks);
	thread_stacks_deinit(&reading.stacks);
	return err;
}

int scan_init(struct scan *ret, const struct snapshot *snapshot, const struct traced_source *traced,
	      const struct lost_list *before)
{
	int err;

	*ret = (struct scan){.snapshot = snapshot};
	err = read_snapshot(ret, traced);
	if (!err)
		err = marking_init(&ret->marking, &ret->heap, &ret->roots);
	if (err)
		return err;
	decide(ret, before);
	if (ret->may_say_lost)
		err = mark_unconfirmed(ret, before);
	if (!err)
		err = lost_graph_init(&ret->lost, &ret->marking);
	if (err)
		return err;
	count(ret);
	if (ret->lost.nr && ret->may_say_lost)
		name_unseen(ret);
	return 0;
}

void scan_deinit(struct scan *scan)
{
	lost_graph_deinit(&scan->lost);
	marking_deinit(&scan->marking);
	roots_deinit(&scan->roots);
	heap_deinit(&scan->heap);
}
