/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks from outside at blocks that were held when their window closed: nothing else is known of
 * them until the next window. A sample of them is read at random times, from some milliseconds
 * after the close to the end of the recording, by process_vm_readv(), without probes and without a
 * stop. What was seen becomes a sample of leakrec:look (common/schema/look_state.h).
 *
 * The process chooses what is read, so there is a limit on blocks and bytes, and nothing that was
 * read is used as an address. What is not in memory is not looked at: nothing is swapped in, and
 * nobody can make leakrec wait (memory_reader.h). For glibc, the chunk shows whether the block is
 * in use, except while it waits in a thread's cache (tcache) or a fast bin.
 */
#ifndef LEAKTOOLS_RECORDER_LOOKS_H
#define LEAKTOOLS_RECORDER_LOOKS_H

#include "recorder/held/held_blocks.h"
#include "recorder/output/perf_writer.h"
#include "recorder/target_table/target_table.h"

#define LOOKS_NEW_MAX	 32   /* blocks of a window */
#define LOOKS_MAX	 1024 /* of all windows */

#define LOOKS_MAX_FRAMES 16

struct looks;

/* The stack of blocks that have outlived their windows for some seconds. */
struct looks_stack {
	pid_t pid;
	size_t nr_blocks; /* so many are in the sample */
	uint64_t hash;	  /* of the rest */
	size_t nr_frames;
	uint64_t frames[LOOKS_MAX_FRAMES]; /* return addresses, innermost first */
};

/* Returns 0 or -ENOMEM. @seed: of the choice. */
int looks_create(uint64_t seed, struct looks **ret);
void looks_destroy(struct looks *looks); /* NULL is fine */

/*
 * Chooses blocks of @held that were allocated from @from_ns on, by processes of @table: first one
 * of each call site, then a second one, and so on; in a site each has the same chance. They replace
 * others at random if there are too many.
 */
void looks_choose(struct looks *looks, const struct held_blocks *held, struct target_table *table,
		  uint64_t from_ns);

/*
 * Finds the stack of which most blocks are left in the sample after some looks, but none for which
 * @is_known returns true, with @context. Returns false if there is none.
 */
bool looks_find_stack(const struct looks *looks,
		      bool (*is_known)(const void *context, const struct looks_stack *stack),
		      const void *context, struct looks_stack *ret);

/*
 * Looks at the blocks whose time has come, or at all, which takes half a second at most. If reading
 * them takes too long, a later call writes what was seen, unless that is long ago. Those that are
 * gone are not looked at again, nor those of processes that have left @table. Returns 0 or the
 * writer's error.
 */
int looks_take(struct looks *looks, struct target_table *table, struct perf_writer *writer,
	       bool at_all);

#endif
