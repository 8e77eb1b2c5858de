/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct cached_chain {
	uint32_t id;
	UT_hash_handle hh;
	uint64_t chain[];
};

_Static_assert(sizeof(struct placed_frame) == 2 * sizeof(uint64_t), "placed_frame has padding");

void stack_table_init(struct stack_table *table)
{
	*table = (struct stack_table){0};
	if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) < 0)
		table->seed = (uintptr_t)table; /* early boot; any number does */
}

static void clear_cache(struct stack_table *table)
{
	struct cached_chain *chain, *next;

	HASH_ITER (hh, table->cache, chain, next) {
		HASH_DELETE(hh, table->cache, chain);
		free(chain);
	}
	table->cache_bytes = 0;
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
	return id != STACK_NONE && id <= table->nr ? table->by_id[id - 1] : NULL;
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

bool stack_table_cache_find(const struct stack_table *table, const uint64_t *chain, size_t nr,
			    uint32_t *ret_id)
{
	unsigned hash = (unsigned)hash_words(chain, nr, table->seed);
	struct cached_chain *cached;

	HASH_FIND_BYHASHVALUE(hh, table->cache, chain, nr * sizeof(*chain), hash, cached);
	if (cached)
		*ret_id = cached->id;
	return cached;
}

void stack_table_cache_add(struct stack_table *table, const uint64_t *chain, size_t nr, uint32_t id)
{
	unsigned hash = (unsigned)hash_words(chain, nr, table->seed);
	size_t size_bytes = sizeof(struct cached_chain) + nr * sizeof(*chain);
	struct cached_chain *cached;

	if (table->cache_bytes + size_bytes > STACK_CACHE_MAX_BYTES)
		clear_cache(table);
	cached = malloc(size_bytes);
	if (!cached)
		return;
	cached->id = id;
	memcpy(cached->chain, chain, nr * sizeof(*chain));
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->cache, cached->chain, nr * sizeof(*chain), hash,
				    cached);
	if (hash_added(cached))
		table->cache_bytes += size_bytes;
	else
		free(cached);
}
