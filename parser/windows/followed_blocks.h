/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that outlived the window in which they were allocated. leakrec looks at a sample of them
 * from outside (leakrec:look). What becomes of the others is not known: they go out of sight where
 * their window closed. The first look shows that a block is in the sample. If none has come
 * FOLLOW_PATIENCE_NS after the window, there will be none.
 *
 * Memory: about 180 bytes for each block that was ever in the sample and was not seen to end, also
 * when leakrec looks at others instead, and for each one of the windows of that time. A block's
 * end is often seen before its first look: that alone would not tell that it is in the sample. So
 * its entry stays.
 */
#ifndef LEAKTOOLS_PARSER_FOLLOWED_BLOCKS_H
#define LEAKTOOLS_PARSER_FOLLOWED_BLOCKS_H

#include "common/hash.h"
#include "common/schema/look_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* leakrec first looks when the window's last events have come: soon, unless the machine is busy. */
#define FOLLOW_PATIENCE_NS UINT64_C(30000000000)

struct follow_key {
	uint64_t address;
	int64_t pid; /* of the process that owns the memory */
};

struct followed_block {
	struct follow_key key;
	uint64_t allocated_ns, sequence; /* of its allocation */
	uint64_t size_bytes;
	uint32_t stack_id;
	uint32_t nr_looks;	       /* 0: it is not known to be in the sample */
	uint32_t nr_untouched;	       /* the last looks that found it untouched */
	bool is_certain;	       /* its window lasted until the recording ended */
	uint64_t opened_ns, closed_ns; /* of its window; opened_ns: after the one before it */
	uint64_t window_ns;	       /* how long it was open */
	uint64_t seen_ns;	       /* it was last seen then */
	uint64_t ended_ns; /* an event of a later window shows that it has ended; or 0 */
	struct followed_block *prev, *next; /* those without looks, by their windows */
	struct followed_block *prev_of_process, *next_of_process; /* the same of its process */
	UT_hash_handle hh;
};

/* A process with blocks without looks. */
struct waiting_process {
	int64_t pid;
	struct followed_block *blocks;
	UT_hash_handle hh;
};

/* Zero it before use. */
struct followed_blocks {
	uint64_t seed; /* of the hashes, from the first block on */
	struct followed_block *by_key;
	struct followed_block *waiting;	    /* those without looks */
	struct waiting_process *waiting_of; /* the same by process */
};

void followed_blocks_deinit(struct followed_blocks *blocks);

/* Adds a copy of @block, without looks. There must be none with its key. Returns 0 or -ENOMEM. */
int followed_blocks_add(struct followed_blocks *blocks, const struct followed_block *block);

/* NULL: there is none. */
struct followed_block *followed_blocks_find(const struct followed_blocks *blocks, pid_t pid,
					    uint64_t address);

/*
 * Notes a look at @time_ns that found the block in @state, which is not LOOK_GONE. Returns whether
 * it was the first one.
 */
bool followed_blocks_look(struct followed_blocks *blocks, struct followed_block *block,
			  enum look_state state, uint64_t time_ns);

/* Removes the block and frees it. */
void followed_blocks_remove(struct followed_blocks *blocks, struct followed_block *block);

/*
 * The block that has waited longest for its first look, if its window closed before @closed_ns;
 * NULL: there is none.
 */
struct followed_block *followed_blocks_waiting(const struct followed_blocks *blocks,
					       uint64_t closed_ns);

/* The same of a process, whenever its window closed. */
struct followed_block *followed_blocks_waiting_of(const struct followed_blocks *blocks, pid_t pid);

#endif
