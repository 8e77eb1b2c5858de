/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/stacks/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MIN_CACHE_SLOTS 1024

struct cached_chain {
	uint64_t hash, generation;
	uint32_t id, nr;
	uint64_t chain[];
};

_Static_assert(sizeof(struct placed_frame) == 2 * sizeof(uint64_t), "placed_frame has padding");

void stack_table_init(struct stack_table *table)
{
	*table = (struct stack_table){0};
	if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) < 0)
		table->seed = (uintptr_t)table; /* no random numbers during early boot */
}

static void clear_cache(struct stack_table *table)
{
	for (size_t i = 0; i < table->nr_cache_slots; i++)
		free(table->cache[i]);
	free(table->cache);
	table->cache = NULL;
	table->nr_cache_slots = table->nr_cached = table->cache_bytes = 0;
}

void stack_table_deinit(struct stack_table *table)
{
	clear_cache(table);
	HASH_CLEAR(hh, table->by_frames);
	for (size_t i = 0; i < table->nr; i++)
		free(table->by_id[i]);
	free(table->by_id);
}

const struct placed_stack *stack_table_find(const struct stack_table *table, uint32_t id)
{
	return id && id <= table->nr ? table->by_id[id - 1] : NULL;
}

static unsigned hash_frames(const struct stack_table *table, const struct placed_frame *frames,
			    size_t nr)
{
	uint64_t hash = table->seed;

	for (size_t i = 0; i < nr; i++) {
		uint64_t place = (uint64_t)frames[i].module_id << 1 | frames[i].is_call;

		hash = hash_mix(hash ^ frames[i].offset, 0xd6e8feb86659fd93) + place;
	}
	return (unsigned)hash_mix(hash, 0xa0761d6478bd642f ^ nr);
}

static struct placed_stack *create_stack(const struct placed_frame *frames,
					 const uint64_t *addresses, size_t nr)
{
	struct placed_stack *stack =
		malloc(sizeof(*stack) + nr * (sizeof(*frames) + sizeof(*addresses)));

	if (!stack)
		return NULL;
	*stack = (struct placed_stack){.nr = (uint32_t)nr};
	memcpy(stack->frames, frames, nr * sizeof(*frames));
	memcpy(stack->frames + nr, addresses, nr * sizeof(*addresses));
	stack->addresses = (const uint64_t *)(stack->frames + nr);
	return stack;
}

int stack_table_intern(struct stack_table *table, const struct placed_frame *frames,
		       const uint64_t *addresses, size_t nr, uint32_t *ret_id)
{
	unsigned hash = hash_frames(table, frames, nr);
	struct placed_stack *stack;

	HASH_FIND_BYHASHVALUE(hh, table->by_frames, frames, nr * sizeof(*frames), hash, stack);
	if (stack) {
		*ret_id = stack->id;
		return 0;
	}

	if (table->nr == UINT32_MAX)
		return -EOVERFLOW;
	if (table->nr == table->capacity) {
		uint32_t capacity =
			table->capacity > UINT32_MAX / 2 ? UINT32_MAX : 2 * table->capacity + 64;
		struct placed_stack **by_id =
			reallocarray(table->by_id, capacity, sizeof(struct placed_stack *));

		if (!by_id)
			return -ENOMEM;
		table->by_id = by_id;
		table->capacity = capacity;
	}
	stack = create_stack(frames, addresses, nr);
	if (!stack)
		return -ENOMEM;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->by_frames, stack->frames, nr * sizeof(*frames), hash,
				    stack);
	if (!hash_added(stack)) {
		free(stack);
		return -ENOMEM;
	}
	table->by_id[table->nr++] = stack;
	*ret_id = stack->id = table->nr;
	return 0;
}

/* The slot of @chain, or the free slot where it belongs. */
static struct cached_chain **find_cached(struct cached_chain **slots, size_t nr_slots,
					 const struct stack_chain *chain, uint64_t hash)
{
	size_t mask = nr_slots - 1, at = hash & mask;

	for (; slots[at]; at = (at + 1) & mask) {
		const struct cached_chain *cached = slots[at];

		if (cached->hash == hash && cached->nr == chain->nr &&
		    cached->generation == chain->generation &&
		    memcmp(cached->chain, chain->addresses, chain->nr * sizeof(uint64_t)) == 0)
			break;
	}
	return &slots[at];
}

bool stack_table_cache_find(const struct stack_table *table, const struct stack_chain *chain,
			    uint64_t *ret_hash, uint32_t *ret_id)
{
	const struct cached_chain *cached;

	*ret_hash = hash_words(chain->addresses, chain->nr, table->seed ^ chain->generation);
	if (!table->nr_cache_slots)
		return false;
	cached = *find_cached(table->cache, table->nr_cache_slots, chain, *ret_hash);
	if (cached)
		*ret_id = cached->id;
	return cached;
}

/* Keeps the cache at most half full. */
static int grow_cache(struct stack_table *table)
{
	size_t nr_slots = table->nr_cache_slots ? 2 * table->nr_cache_slots : MIN_CACHE_SLOTS;
	struct cached_chain **slots;

	if (2 * (table->nr_cached + 1) <= table->nr_cache_slots)
		return 0;
	slots = calloc(nr_slots, sizeof(struct cached_chain *));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->nr_cache_slots; i++) {
		struct cached_chain *cached = table->cache[i];
		size_t at = cached ? cached->hash & (nr_slots - 1) : 0;

		while (cached && slots[at])
			at = (at + 1) & (nr_slots - 1);
		if (cached)
			slots[at] = cached;
	}
	free(table->cache);
	table->cache = slots;
	table->nr_cache_slots = nr_slots;
	return 0;
}

void stack_table_cache_add(struct stack_table *table, const struct stack_chain *chain,
			   uint64_t hash, uint32_t id)
{
	size_t size_bytes = sizeof(struct cached_chain) + chain->nr * sizeof(uint64_t);
	struct cached_chain *cached, **slot;

	if (table->cache_bytes + size_bytes > STACK_CACHE_MAX_BYTES)
		clear_cache(table);
	if (grow_cache(table))
		return;
	cached = malloc(size_bytes);
	if (!cached)
		return;
	cached->hash = hash;
	cached->generation = chain->generation;
	cached->id = id;
	cached->nr = (uint32_t)chain->nr;
	memcpy(cached->chain, chain->addresses, chain->nr * sizeof(uint64_t));
	slot = find_cached(table->cache, table->nr_cache_slots, chain, hash);
	free(*slot);
	*slot = cached;
	table->nr_cached++;
	table->cache_bytes += size_bytes;
}
