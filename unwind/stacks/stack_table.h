/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks by id. Stacks are equal if all their frames are the same positions in the same modules.
 * Ids are dense from 1. A cache finds a callchain that came before in the same address space by its
 * addresses alone.
 */
#ifndef LEAKTOOLS_UNWIND_STACK_TABLE_H
#define LEAKTOOLS_UNWIND_STACK_TABLE_H

#include "common/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_CACHE_MAX_BYTES (64u << 20) /* past this the cache is emptied */

/* A frame's identity, and where it was. No padding: it is compared as bytes. */
struct placed_frame {
	uint64_t offset;    /* in the module's file; without a module, the address */
	uint32_t module_id; /* MODULE_NONE: none */
	uint32_t is_call;   /* 1: a return address, 0: not */
};

struct placed_stack {
	uint32_t id;
	uint32_t nr;
	const uint64_t *addresses; /* in the first process that had it */
	UT_hash_handle hh;
	struct placed_frame frames[]; /* then the addresses */
};

struct cached_chain;

struct stack_table {
	struct placed_stack *by_frames;
	struct placed_stack **by_id; /* [id - 1] */
	uint32_t nr, capacity;
	struct cached_chain **cache; /* linear probing; at most half of the slots in use */
	size_t nr_cache_slots;	     /* a power of two, or 0 */
	size_t nr_cached, cache_bytes;
	uint64_t seed; /* of the hash, so that nobody can prepare collisions */
};

void stack_table_init(struct stack_table *table);
void stack_table_deinit(struct stack_table *table);

/* The stack of that id, or NULL for 0 and ids never given out. */
const struct placed_stack *stack_table_find(const struct stack_table *table, uint32_t id);

/*
 * Gets the id of a placed stack, new or known. Returns 0, -ENOMEM, or -EOVERFLOW if there are no
 * more ids.
 */
int stack_table_intern(struct stack_table *table, const struct placed_frame *frames,
		       const uint64_t *addresses, size_t nr, uint32_t *ret_id);

/* A callchain as recorded. In the same generation, the same callchain is the same stack. */
struct stack_chain {
	uint64_t generation; /* of the address space */
	const uint64_t *addresses;
	size_t nr;
};

/* Returns false if @chain is not cached. *@ret_hash is its hash, for _add(). */
bool stack_table_cache_find(const struct stack_table *table, const struct stack_chain *chain,
			    uint64_t *ret_hash, uint32_t *ret_id);
/*
 * Adds a chain that is not cached. Running out of memory does no harm: the chain will be placed
 * again.
 */
void stack_table_cache_add(struct stack_table *table, const struct stack_chain *chain,
			   uint64_t hash, uint32_t id);

#endif
