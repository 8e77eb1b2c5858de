/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stacks of held blocks, each once, with the function that allocated. A stack is a callchain as
 * in a sample, whose first addresses are that function's and the one that it returns to, as
 * leakparse makes them of the allocation itself (parser/analysis/sample_stacks.c).
 */
#ifndef LEAKTOOLS_RECORDER_HELD_STACKS_H
#define LEAKTOOLS_RECORDER_HELD_STACKS_H

#include "recorder/held/held_events.h"

/* 64 MiB. Stacks without room have the number 0. */
#define HELD_STACKS_MAX_WORDS ((size_t)8 << 20)

struct held_stack {
	const struct probe_schema *schema;
	const uint64_t *chain; /* begins with PERF_CONTEXT_USER */
	size_t nr;
};

/* All 0: empty. */
struct held_stacks {
	uint64_t *words; /* of each stack: its schema, its length, its chain */
	size_t nr_words, nr_allocated;
	uint32_t *at; /* by number - 1: where in @words */
	size_t nr, nr_at;
	uint32_t *slots; /* a hash table of numbers, with linear probing */
	size_t nr_slots; /* a power of two, or 0 */
	uint64_t seed;	 /* the chains are the processes' choice */
};

void held_stacks_deinit(struct held_stacks *stacks);

/* The number of the stack; 0: there is no room for it. */
uint32_t held_stacks_add(struct held_stacks *stacks, const struct held_stack *stack);

/* The stack of the allocation @event, whose sample is @sample, as held_stacks_add() numbers it. */
uint32_t held_stacks_add_sample(struct held_stacks *stacks, const struct held_event *event,
				const struct perf_event_header *sample, const struct raw_head *raw);

/* The stack of a number that held_stacks_add() returned, not 0. Valid until the next one is added.
 */
struct held_stack held_stacks_get(const struct held_stacks *stacks, uint32_t nr);

#endif
