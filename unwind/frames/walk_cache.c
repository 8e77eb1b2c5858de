/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/walk_cache.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

#define NR_WAYS	     4
#define NR_SETS	     4096
#define IS_OUTERMOST (1ull << 63) /* the callee's number is an address space's generation */
/* When fewer than one walk in four is found, the cache is not used for a while. */
#define ASSESSED_WALKS 1024
#define SKIPPED_WALKS  16384

struct walk_node {
	struct walk_frame frame;
	uint64_t callee; /* 0: free */
	uint64_t id;
	struct walk_node
		*likely; /* the last caller's node; the node itself, which never matches: none */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct walk_node) == 64, "a node has a cache line of its own");

#define NO_OFFSET UINT32_MAX /* beyond every dump: the return address of a last frame */

/* The dump that walks are compared with. */
struct walked {
	const uint8_t *bytes;
	int64_t last_offset; /* the highest offset of a whole word; negative: there is none */
	uint64_t sp;
	const uint64_t *registers;
};

static struct walked walked_init(const struct stack_dump *dump,
				 const struct dump_registers *registers)
{
	return (struct walked){
		.bytes = dump->bytes,
		.last_offset = (int64_t)dump->nr_bytes - (int64_t)sizeof(uint64_t),
		.sp = registers->sp,
		.registers = registers->dwarf,
	};
}

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

static inline uint64_t word_at(const struct walked *walked, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, walked->bytes + offset, sizeof(word));
	return word;
}

static inline bool base_holds(const struct walk_frame *frame, const struct walked *walked)
{
	if (frame->base == BASE_WORD)
		return frame->base_at <= walked->last_offset &&
		       word_at(walked, frame->base_at) - walked->sp == frame->distance;
	return frame->base == BASE_STACK_POINTER ||
	       walked->registers[frame->base_at] - walked->sp == frame->distance;
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

static void set_end(const struct walk_frame *last, const struct walked *walked, size_t nr,
		    struct unwound_stack *ret)
{
	nr -= !last->address;
	ret->nr = nr;
	ret->is_call[0] = false;
	if (nr > 1)
		memset(ret->is_call + 1, true, nr - 1);
	ret->complete = last->is_last;
	ret->truncated = !last->is_last;
	ret->top =
		walked->sp + (last->is_last ? last->distance : last->return_at + sizeof(uint64_t));
}

static bool follow(const struct walk_cache *cache, struct walk_node *node,
		   const struct walked *walked, struct unwound_stack *ret)
{
	const struct walked copy = *walked; /* a copy that stays in registers */
	uint64_t address, *to = ret->addresses;

	while (node) {
		struct walk_node *caller = node->likely;

		*to++ = node->frame.address;
		if (node->frame.return_at > copy.last_offset) {
			set_end(&node->frame, walked, (size_t)(to - ret->addresses), ret);
			return true;
		}
		address = word_at(&copy, node->frame.return_at);
		if (!matches(caller, node->id, address, &copy)) {
			caller = look_up(cache, node->id, address, walked);
			if (caller)
				node->likely = caller;
		}
		node = caller;
	}
	return false;
}

bool walk_cache_find(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		     const struct dump_registers *registers, struct unwound_stack *ret)
{
	const struct walked walked = walked_init(dump, registers);
	uint64_t callee = generation | IS_OUTERMOST;
	bool found;

	if (!walk_cache_is_used(cache)) {
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

/* Replaces the oldest node of the set. */
static struct walk_node *insert(struct walk_cache *cache, uint64_t callee,
				const struct walk_frame *frame)
{
	struct walk_node *set = set_of(cache, callee, frame->address), *node = set;

	for (size_t way = 1; way < NR_WAYS; way++)
		if (set[way].id < node->id)
			node = &set[way];
	*node = (struct walk_node){
		.frame = *frame, .callee = callee, .id = ++cache->last_id, .likely = node};
	if (frame->is_last)
		node->frame.return_at = NO_OFFSET;
	return node;
}

void walk_cache_add(struct walk_cache *cache, uint64_t generation, const struct stack_dump *dump,
		    const struct dump_registers *registers, const struct walk_frame *frames,
		    size_t nr)
{
	const struct walked walked = walked_init(dump, registers);
	uint64_t callee = generation | IS_OUTERMOST;

	if (!walk_cache_is_used(cache))
		return;
	for (size_t i = 0; i < nr; i++) {
		struct walk_node *node = look_up(cache, callee, frames[i].address, &walked);

		if (!node)
			node = insert(cache, callee, &frames[i]);
		callee = node->id;
	}
}
