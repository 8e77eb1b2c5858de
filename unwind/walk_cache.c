/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/walk_cache.h"

#include "unwind/hash.h"

#include <errno.h>
#include <stdlib.h>

#define NR_WAYS	     4
#define NR_SETS	     4096
#define IS_OUTERMOST (1ull << 63) /* a callee's number that is an address space's generation */
/* Where fewer than one walk in four is known, looking for them is given up for a while. */
#define ASSESSED_WALKS 1024
#define SKIPPED_WALKS  16384

struct walk_node {
	struct walk_frame frame;
	uint64_t callee; /* 0: free */
	uint64_t id;
	uint32_t likely; /* the node of the caller that came last */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct walk_node) == 64, "a node has a cache line of its own");

/* What a walk is compared with. */
struct walked {
	const struct stack_dump *dump;
	const struct dump_registers *registers;
};

int walk_cache_init(struct walk_cache *cache)
{
	size_t size_bytes = NR_SETS * NR_WAYS * sizeof(struct walk_node);

	*cache = (struct walk_cache){0};
	cache->nodes = aligned_alloc(sizeof(struct walk_node), size_bytes);
	if (!cache->nodes)
		return -ENOMEM;
	memset(cache->nodes, 0, size_bytes);
	return 0;
}

void walk_cache_deinit(struct walk_cache *cache)
{
	free(cache->nodes);
	cache->nodes = NULL;
}

static inline bool read_place(const struct stack_dump *dump, uint32_t place, uint64_t *ret)
{
	if (dump->nr_bytes < sizeof(*ret) || place > dump->nr_bytes - sizeof(*ret))
		return false;
	memcpy(ret, dump->bytes + place, sizeof(*ret));
	return true;
}

static inline bool base_holds(const struct walk_frame *frame, const struct walked *walked)
{
	uint64_t base;

	if (frame->is_last || frame->base == BASE_STACK_POINTER)
		return true;
	if (frame->base == BASE_REGISTER)
		base = walked->registers->dwarf[frame->base_at];
	else if (!read_place(walked->dump, frame->base_at, &base))
		return false;
	return base - walked->registers->sp == frame->distance;
}

static inline bool matches(const struct walk_node *node, uint64_t callee, uint64_t address,
			   const struct walked *walked)
{
	return node->callee == callee && node->frame.address == address &&
	       base_holds(&node->frame, walked);
}

static struct walk_node *set_of(const struct walk_cache *cache, uint64_t callee, uint64_t address)
{
	uint64_t hash = hash_mix(address ^ 0x9e3779b97f4a7c15, callee ^ 0xd6e8feb86659fd93);

	return cache->nodes + (hash & (NR_SETS - 1)) * NR_WAYS;
}

static struct walk_node *look_up(const struct walk_cache *cache, uint64_t callee, uint64_t address,
				 const struct walked *walked)
{
	struct walk_node *set = set_of(cache, callee, address);

	for (size_t way = 0; way < NR_WAYS; way++)
		if (matches(&set[way], callee, address, walked))
			return &set[way];
	return NULL;
}

/* The node of the caller of @node's frame, whose address is @address. */
static inline struct walk_node *find_caller(const struct walk_cache *cache, struct walk_node *node,
					    uint64_t address, const struct walked *walked)
{
	struct walk_node *caller = cache->nodes + node->likely;

	if (matches(caller, node->id, address, walked))
		return caller;
	caller = look_up(cache, node->id, address, walked);
	if (caller)
		node->likely = (uint32_t)(caller - cache->nodes);
	return caller;
}

static bool follow(const struct walk_cache *cache, struct walk_node *node,
		   const struct walked *walked, struct unwound_stack *ret)
{
	ret->nr = 0;
	while (node) {
		const struct walk_frame *frame = &node->frame;
		uint64_t address;

		if (frame->address) {
			ret->addresses[ret->nr] = frame->address;
			ret->is_call[ret->nr] = frame->is_call;
			ret->nr++;
		}
		if (frame->is_last) {
			ret->complete = true;
			ret->truncated = false;
			ret->top = walked->registers->sp + frame->distance;
			return true;
		}
		if (!read_place(walked->dump, frame->return_at, &address))
			return false;
		node = find_caller(cache, node, address, walked);
	}
	return false;
}

bool walk_cache_find(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		     const struct dump_registers *registers, struct unwound_stack *ret)
{
	const struct walked walked = {dump, registers};
	uint64_t callee = generation | IS_OUTERMOST;
	bool found;

	if (cache->nr_skipped > 0) {
		cache->nr_skipped--;
		return false;
	}
	found = follow(cache, look_up(cache, callee, registers->pc, &walked), &walked, ret);
	cache->nr_found += found;
	if (++cache->nr_asked == ASSESSED_WALKS) {
		if (cache->nr_found < ASSESSED_WALKS / 4)
			cache->nr_skipped = SKIPPED_WALKS;
		cache->nr_asked = cache->nr_found = 0;
	}
	return found;
}

/* In the place of what has been there for the longest time. */
static struct walk_node *insert(struct walk_cache *cache, uint64_t callee,
				const struct walk_frame *frame)
{
	struct walk_node *set = set_of(cache, callee, frame->address), *node = set;

	for (size_t way = 1; way < NR_WAYS; way++)
		if (set[way].id < node->id)
			node = &set[way];
	*node = (struct walk_node){.frame = *frame, .callee = callee, .id = ++cache->last_id};
	return node;
}

void walk_cache_add(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		    const struct dump_registers *registers, const struct walk_frame *frames,
		    size_t nr)
{
	const struct walked walked = {dump, registers};
	uint64_t callee = generation | IS_OUTERMOST;

	if (cache->nr_skipped > 0)
		return;
	for (size_t i = 0; i < nr; i++) {
		struct walk_node *node = look_up(cache, callee, frames[i].address, &walked);

		if (!node)
			node = insert(cache, callee, &frames[i]);
		callee = node->id;
	}
}
