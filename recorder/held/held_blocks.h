/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that were allocated while leakrec records, and are still held. leakparse finds them in
 * the recording; leakrec itself knows them only if it is asked to, because a table costs time for
 * each event and 43 to 85 bytes for each block.
 *
 * Events of several CPUs come out of order. They wait here until all from before a time have come,
 * and are then applied in the order of their times (common/schema/probe_schema.h says what each
 * does to the heap).
 *
 *   nested calls  Each thread has a stack of open calls. A return belongs to the newest one of its
 *		   function. An outer call that returns the block of an inner one, or an address
 *		   inside of it, replaces that: each block is here once.
 *   releases      at the entry. If realloc() fails, its old block is held again.
 *   fork          The child's heap is a copy of its parent's. It begins empty here: the copies are
 *		   the parent's blocks, and count once. What a vfork() child does to its parent's
 *		   heap is not seen.
 *   exec, exit    The process has no blocks any more. It counts as ended with its first thread.
 *
 * The processes choose what is recorded, so everything here has a limit. What does not fit, or
 * cannot be known (the size, of a call that began before the recording), is counted.
 */
#ifndef LEAKTOOLS_RECORDER_HELD_BLOCKS_H
#define LEAKTOOLS_RECORDER_HELD_BLOCKS_H

#include "recorder/bpf/samples_shared.h"
#include "recorder/held/held_table.h"

#include <sys/types.h>

struct held_blocks;
struct held_counts;
struct held_stacks;

/* For at most @limit blocks of all processes together. Returns 0 or -ENOMEM. */
int held_blocks_create(size_t limit, struct held_blocks **ret);
/* For tests: leakrec leaves that to its end (session.c). */
void held_blocks_destroy(struct held_blocks *held); /* NULL is fine */

/*
 * Before the first sample: the site of each block is the number of its stack (held_stacks.h; 0:
 * there was no room for it) in place of a hash. And if there are more blocks than the limit, a
 * sample of them is kept, one in 2, 4, 8 and so on, in place of the first ones. Returns 0 or
 * -ENOMEM.
 */
int held_blocks_keep_stacks(struct held_blocks *held);
const struct held_stacks *held_blocks_stacks(const struct held_blocks *held);
/* What to count among the allocations that are applied, by their stacks, and the counts. */
struct held_counts *held_blocks_counts(struct held_blocks *held);
/* One block in so many is here. It becomes more, never less. */
uint64_t held_blocks_one_of(const struct held_blocks *held);

/*
 * Tells of an event of the recording before its first sample: @type is its common_type, @name
 * "group:event", @format the text of its format file. Events that are not about blocks are ignored.
 * Returns 0 or -ENOMEM.
 */
int held_blocks_add_event(struct held_blocks *held, uint16_t type, const char *name,
			  const char *format);

/*
 * Feeds a sample, as it is written; @raw is the beginning of its raw data. The callchain, if it has
 * one, lies between. Copies what it needs.
 */
void held_blocks_feed_sample(struct held_blocks *held, const struct perf_event_header *sample,
			     const struct raw_head *raw);

/* Feeds a FORK, EXIT or COMM record; ignores others. */
void held_blocks_feed_task(struct held_blocks *held, const struct perf_event_header *record);

/* Applies what happened up to @until_ns. The caller has fed all of that. */
void held_blocks_apply(struct held_blocks *held, uint64_t until_ns);

/* Forgets all blocks and open calls: from now on, calls are not seen for a while. */
void held_blocks_forget(struct held_blocks *held);

/* The newest @until_ns so far. */
uint64_t held_blocks_applied_ns(const struct held_blocks *held);

/* The process after @pid, in no order; of 0, the first one. 0: there is no other. */
pid_t held_blocks_next_process(const struct held_blocks *held, pid_t pid);

/* How many blocks process @pid holds. */
size_t held_blocks_nr(const struct held_blocks *held, pid_t pid);

/*
 * The next block of process @pid, in no order; NULL: there is none. *@at begins with 0. Blocks are
 * valid until the next call of held_blocks_apply().
 */
const struct held_block *held_blocks_next(const struct held_blocks *held, pid_t pid, size_t *at);

/* How many allocations are not here. (Some blocks may have been released since.) */
uint64_t held_blocks_left_out(const struct held_blocks *held);

/* With held_blocks_keep_stacks(): how many allocations are here, but had no room for a stack. */
uint64_t held_blocks_without_stack(const struct held_blocks *held);

/*
 * How many events were applied out of order, because too many came in one round: blocks may be here
 * that were released.
 */
uint64_t held_blocks_out_of_order(const struct held_blocks *held);

#endif
