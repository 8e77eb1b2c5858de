/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks up the stack that were made before. A program allocates from the same call paths over and
 * over; once one has been unwound by rules, it is enough to see that a dump has the same return
 * addresses in the same places. These places are known beforehand, so the loads need not wait for
 * each other, as they do where each address first has to be looked up.
 *
 * A frame's node says under which condition its return address is where. Nothing else than the
 * words and registers that the nodes check decided how the rules went, and all places are distances
 * from the stack pointer. So a walk that is found here is the one that the rules would make. Only
 * walks to the stack's end are kept, or to the dump's, and none with frames that take more than
 * that; so all addresses but the first are return addresses.
 *
 * The nodes are a cache of fixed size. A node is found by its callee's node, whose number no other
 * node ever has, and its address.
 */
#ifndef LEAKTOOLS_UNWIND_WALK_CACHE_H
#define LEAKTOOLS_UNWIND_WALK_CACHE_H

#include "unwind/frames/dump_registers.h"
#include "unwind/frames/unwinder.h"

#define WALK_CACHE_MAX_FRAMES 256

/* From where a frame's canonical frame address is counted. */
enum walk_base {
	BASE_STACK_POINTER, /* the dump's start */
	BASE_WORD,	    /* a word of the dump, that is, a register saved there */
	BASE_REGISTER,	    /* a register as it was when the dump was made */
};

/* A frame of a walk. Places are in the dump, in bytes. */
struct walk_frame {
	uint64_t address; /* 0: there is no such frame, the walk has ended */
	/* The base less the stack pointer; of the last frame: what unwound_stack.top is, so. */
	uint64_t distance;
	uint32_t base_at;   /* BASE_WORD: its place; BASE_REGISTER: its DWARF number */
	uint32_t return_at; /* the place of the return address */
	uint8_t base;	    /* enum walk_base */
	bool is_last;
};

struct walk_node;

struct walk_cache {
	struct walk_node *nodes;
	uint64_t last_id;
	uint32_t nr_asked, nr_found, nr_skipped; /* to see whether it is any use */
};

/* Returns 0 or -ENOMEM. */
int walk_cache_init(struct walk_cache *cache);
void walk_cache_deinit(struct walk_cache *cache);

/* Whether walks are looked for and kept at all, for now. */
static inline bool walk_cache_is_used(const struct walk_cache *cache)
{
	return cache->nr_skipped == 0;
}

/*
 * Unwinds a dump, taken in an address space of that generation (address_space.h), if a walk of its
 * kind is known. Returns whether it is; @ret is filled in then, else undefined.
 */
bool walk_cache_find(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		     const struct dump_registers *registers, struct unwound_stack *ret);

/* Keeps the walk of that dump, of 1 to WALK_CACHE_MAX_FRAMES frames. */
void walk_cache_add(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		    const struct dump_registers *registers, const struct walk_frame *frames,
		    size_t nr);

#endif
