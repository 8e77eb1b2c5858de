/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of one process, by address. */
#ifndef LEAKTOOLS_RECORDER_HELD_TABLE_H
#define LEAKTOOLS_RECORDER_HELD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELD_SITE_FRAMES 8

/* A block that the process has allocated and not released. */
struct held_block {
	uint64_t address;    /* never 0 */
	uint64_t size_bytes; /* as asked for */
	uint64_t time_ns;    /* of the event that allocated it: CLOCK_MONOTONIC */
	uint64_t site;	     /* a hash of the HELD_SITE_FRAMES innermost return addresses, or a
				stack's number (held_blocks_keep_stacks()) */
};

/* Open addressing with linear probing; an entry without an address is free. All 0: empty. */
struct held_table {
	struct held_block *entries;
	size_t nr, nr_entries; /* @nr_entries is a power of two, or 0 */
	uint64_t seed;	       /* of the hashes: the addresses are the process's choice */
};

void held_table_deinit(struct held_table *table);

/* The block at @address, or NULL. Valid until the table changes. */
struct held_block *held_table_find(const struct held_table *table, uint64_t address);

/* Adds a block, in place of one at its address. Returns false if out of memory. */
bool held_table_put(struct held_table *table, const struct held_block *block);

/* Removes the block at @address, and stores it. Returns false if there is none. */
bool held_table_take(struct held_table *table, uint64_t address, struct held_block *ret);

#endif
