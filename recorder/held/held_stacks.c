/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_stacks.h"

#include "common/hash.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_WORDS  2 /* before the chain */
#define FIRST_SLOTS 1024
#define MAX_CHAIN   2048 /* no recorder's chain is longer */

void held_stacks_deinit(struct held_stacks *stacks)
{
	free(stacks->words);
	free(stacks->at);
	free(stacks->slots);
	*stacks = (struct held_stacks){0};
}

struct held_stack held_stacks_get(const struct held_stacks *stacks, uint32_t nr)
{
	const uint64_t *words = stacks->words + stacks->at[nr - 1];

	/* NOLINTNEXTLINE(performance-no-int-to-ptr): it was one */
	return (struct held_stack){(const void *)(uintptr_t)words[0], words + HEAD_WORDS,
				   (size_t)words[1]};
}

static uint64_t hash_stack(const struct held_stacks *stacks, const struct held_stack *stack)
{
	return hash_words(stack->chain, stack->nr, stacks->seed ^ (uintptr_t)stack->schema);
}

static bool is_equal(const struct held_stack *a, const struct held_stack *b)
{
	return a->schema == b->schema && a->nr == b->nr &&
	       memcmp(a->chain, b->chain, a->nr * sizeof(*a->chain)) == 0;
}

/* The slot of @stack, or the empty one where it belongs. */
static uint32_t *find_slot(const struct held_stacks *stacks, const struct held_stack *stack)
{
	size_t mask = stacks->nr_slots - 1;
	size_t i = (size_t)hash_stack(stacks, stack) & mask;

	for (;; i = (i + 1) & mask) {
		struct held_stack other;

		if (!stacks->slots[i])
			return &stacks->slots[i];
		other = held_stacks_get(stacks, stacks->slots[i]);
		if (is_equal(&other, stack))
			return &stacks->slots[i];
	}
}

static bool grow_slots(struct held_stacks *stacks)
{
	size_t nr = stacks->nr_slots ? 2 * stacks->nr_slots : FIRST_SLOTS;
	uint32_t *slots = calloc(nr, sizeof(*slots));

	if (!slots)
		return false;
	if (!stacks->nr_slots)
		stacks->seed = hash_seed();
	free(stacks->slots);
	stacks->slots = slots;
	stacks->nr_slots = nr;
	for (uint32_t i = 1; i <= stacks->nr; i++) {
		struct held_stack stack = held_stacks_get(stacks, i);

		*find_slot(stacks, &stack) = i;
	}
	return true;
}

/* Makes room for a stack of @nr words. */
static bool make_room(struct held_stacks *stacks, size_t nr)
{
	if (stacks->nr_words + nr > HELD_STACKS_MAX_WORDS)
		return false;
	if (stacks->nr_words + nr > stacks->nr_allocated) {
		size_t more = 2 * stacks->nr_allocated + nr + FIRST_SLOTS;
		uint64_t *words = reallocarray(stacks->words, more, sizeof(*words));

		if (!words)
			return false;
		stacks->words = words;
		stacks->nr_allocated = more;
	}
	if (stacks->nr == stacks->nr_at) {
		size_t more = 2 * stacks->nr_at + FIRST_SLOTS;
		uint32_t *at = reallocarray(stacks->at, more, sizeof(*at));

		if (!at)
			return false;
		stacks->at = at;
		stacks->nr_at = more;
	}
	return 2 * (stacks->nr + 1) <= stacks->nr_slots || grow_slots(stacks);
}

uint32_t held_stacks_add(struct held_stacks *stacks, const struct held_stack *stack)
{
	uint32_t found = stacks->nr_slots ? *find_slot(stacks, stack) : 0, *slot;
	uint64_t *words;

	if (found)
		return found;
	if (!make_room(stacks, HEAD_WORDS + stack->nr))
		return 0;
	words = stacks->words + stacks->nr_words;
	words[0] = (uintptr_t)stack->schema;
	words[1] = stack->nr;
	memcpy(words + HEAD_WORDS, stack->chain, stack->nr * sizeof(*words));
	slot = find_slot(stacks, stack);
	stacks->at[stacks->nr++] = (uint32_t)stacks->nr_words;
	stacks->nr_words += HEAD_WORDS + stack->nr;
	*slot = (uint32_t)stacks->nr;
	return *slot;
}

uint32_t held_stacks_add_sample(struct held_stacks *stacks, const struct held_event *event,
				const struct perf_event_header *sample, const struct raw_head *raw)
{
	const uint64_t *rest = (const void *)((const char *)sample + sizeof(struct plain_head));
	size_t nr_rest = (size_t)((const char *)raw - (const char *)rest) / sizeof(*rest), nr = 0;
	uint64_t chain[MAX_CHAIN];

	chain[nr++] = (uint64_t)PERF_CONTEXT_USER;
	chain[nr++] = event->probe;
	/* Its length, and the same marker, come first. */
	for (int i = 0; i < 2 && nr_rest; i++, rest++)
		nr_rest--;
	/* At an exit, the chain begins with the instruction. */
	if (event->type->point == PROBE_EXIT && nr_rest) {
		rest++;
		nr_rest--;
	}
	if (event->return_address && (!nr_rest || rest[0] != event->return_address))
		chain[nr++] = event->return_address;
	if (nr_rest > MAX_CHAIN - nr)
		nr_rest = MAX_CHAIN - nr;
	memcpy(chain + nr, rest, nr_rest * sizeof(*rest));
	return held_stacks_add(stacks,
			       &(struct held_stack){event->type->schema, chain, nr + nr_rest});
}
