/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cache of walks up the stack. A program allocates from the same call paths over and over. Once
 * rules have unwound a path, it is enough to see that a dump has the same return addresses at the
 * same offsets. The offsets are known beforehand, so the loads need not wait for each other.
 *
 * A node of the cache stands for a frame and says under which condition its return address is at
 * which offset. The rules decided by nothing but the words and registers that the nodes check, and
 * all offsets are distances from the stack pointer. So a walk found here is the walk that the rules
 * would make. Only walks to the end of the stack or of the dump are kept, and only of plain frames,
 * so that all addresses but the first are return addresses.
 *
 * The cache has a fixed size. A node is found by its address and the number of its callee's node.
 * No two nodes ever have the same number.
 */
#ifndef LEAKTOOLS_UNWIND_WALK_CACHE_H
#define LEAKTOOLS_UNWIND_WALK_CACHE_H

#include "unwind/frames/dump_registers.h"
#include "unwind/frames/unwinder.h"

#define WALK_CACHE_MAX_FRAMES 256

/* The base from which a frame's canonical frame address is counted. */
enum walk_base {
	BASE_STACK_POINTER, /* the dump's start */
	BASE_WORD,	    /* a register saved in the dump */
	BASE_REGISTER,	    /* a register of the sample */
};

/* A frame of a walk. Offsets are bytes from the start of the dump. */
struct walk_frame {
	uint64_t address; /* 0: the walk has ended before such a frame */
	/*
	 * The base minus the stack pointer. In the last frame: unwound_stack.top minus the stack
	 * pointer.
	 */
	uint64_t distance;
	uint32_t base_at;   /* BASE_WORD: its offset; BASE_REGISTER: its DWARF number */
	uint32_t return_at; /* the offset of the return address */
	uint8_t base;	    /* enum walk_base */
	bool is_last;
};

struct walk_node;

struct walk_cache {
	struct walk_node *nodes;
	uint64_t last_id;
	uint32_t nr_asked, nr_found, nr_skipped; /* to measure how useful the cache is */
};

/* Returns 0 or -ENOMEM. */
int walk_cache_init(struct walk_cache *cache);
void walk_cache_deinit(struct walk_cache *cache);

/* True if the cache is in use now. */
static inline bool walk_cache_is_used(const struct walk_cache *cache)
{
	return cache->nr_skipped == 0;
}

/*
 * Unwinds a dump by a cached walk. @generation is that of the address space (address_space.h).
 * Returns false if there is no such walk; @ret is undefined then.
 */
bool walk_cache_find(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		     const struct dump_registers *registers, struct unwound_stack *ret);

/* Caches the walk of a dump, of 1 to WALK_CACHE_MAX_FRAMES frames. */
void walk_cache_add(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		    const struct dump_registers *registers, const struct walk_frame *frames,
		    size_t nr);

#endif
