/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/formats/held_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 20 /* the first periods last 2^20 ns, about a millisecond */

struct stack_amount {
	struct held_amount now;
	struct held_amount at_peak; /* valid if @peak is the history's last one; else @now is */
	uint64_t peak;		    /* the last peak before the last change; 0: none */
};

struct held_history {
	const struct size_range *size;
	int err;
	bool has_begun;
	uint64_t start_ns;
	unsigned int shift;
	size_t period; /* the current one */
	struct held_amount points[HELD_POINTS];
	struct held_amount now, most;
	uint64_t most_ns;
	uint64_t peak; /* number of the last one, from 1 */
	struct stack_amount *stacks;
	uint32_t max_stack;
};

struct held_history *held_history_create(const struct size_range *size)
{
	struct held_history *history = calloc(1, sizeof(*history));

	if (!history)
		return NULL;
	history->size = size;
	history->shift = FIRST_SHIFT;
	history->peak = 1;
	return history;
}

void held_history_destroy(struct held_history *history)
{
	if (!history)
		return;
	free(history->stacks);
	free(history);
}

int held_history_error(const struct held_history *history)
{
	return history->err;
}

/* Joins pairs of periods. The end of the second is the end of both. */
static void widen(struct held_history *history)
{
	for (size_t i = 0; i < HELD_POINTS / 2; i++)
		history->points[i] = history->points[2 * i + 1];
	history->shift++;
	history->period /= 2;
}

/* Moves to the period of @time_ns. Skipped periods end with the current amount. */
static void advance(struct held_history *history, uint64_t time_ns)
{
	uint64_t since;

	if (!history->has_begun) {
		history->has_begun = true;
		history->start_ns = time_ns;
	}
	since = time_ns > history->start_ns ? time_ns - history->start_ns : 0;
	while (since >> history->shift >= HELD_POINTS) {
		/* widen() reads all periods. */
		for (size_t i = history->period; i < HELD_POINTS; i++)
			history->points[i] = history->now;
		history->period = HELD_POINTS - 1;
		widen(history);
	}
	for (; history->period < since >> history->shift; history->period++)
		history->points[history->period] = history->now;
}

void held_history_time(void *context, uint64_t time_ns)
{
	struct held_history *history = context;

	advance(history, time_ns);
	history->points[history->period] = history->now;
}

static struct stack_amount *stack_of(struct held_history *history, uint32_t stack_id)
{
	if (stack_id >= history->max_stack) {
		size_t max = stack_id < UINT32_MAX / 2 ? 2 * (size_t)stack_id + 64 : UINT32_MAX;
		struct stack_amount *stacks = realloc(history->stacks, max * sizeof(*stacks));

		if (!stacks || stack_id >= max) {
			history->stacks = stacks ? stacks : history->stacks;
			history->err = -ENOMEM;
			return NULL;
		}
		memset(stacks + history->max_stack, 0,
		       (max - history->max_stack) * sizeof(*stacks));
		history->stacks = stacks;
		history->max_stack = (uint32_t)max;
	}
	return &history->stacks[stack_id];
}

static void apply(struct held_amount *amount, const struct heap_change *change)
{
	uint64_t bytes = change->block.size_known ? change->block.size_bytes : 0;

	if (change->enters) {
		if (__builtin_add_overflow(amount->bytes, bytes, &amount->bytes))
			amount->bytes = UINT64_MAX;
		amount->blocks++;
	} else {
		amount->bytes -= bytes < amount->bytes ? bytes : amount->bytes;
		amount->blocks -= amount->blocks > 0;
	}
}

void held_history_change(void *context, const struct heap_change *change)
{
	struct held_history *history = context;
	const struct heap_block *block = &change->block;
	struct stack_amount *stack;

	if (history->err || (history->size && !(block->size_known &&
						size_range_has(history->size, block->size_bytes))))
		return;
	advance(history, change->op.time_ns);
	stack = stack_of(history, block->allocated.stack_id);
	if (!stack)
		return;
	if (stack->peak != history->peak) {
		stack->at_peak = stack->now;
		stack->peak = history->peak;
	}
	apply(&stack->now, change);
	apply(&history->now, change);
	if (history->now.bytes > history->most.bytes) {
		history->most = history->now;
		history->most_ns = change->op.time_ns;
		history->peak++;
	}
	history->points[history->period] = history->now;
}

const struct held_amount *held_history_points(const struct held_history *history, size_t *ret_nr,
					      uint64_t *ret_start_ns, uint64_t *ret_period_ns)
{
	*ret_nr = history->has_begun ? history->period + 1 : 0;
	*ret_start_ns = history->start_ns;
	*ret_period_ns = 1ULL << history->shift;
	return history->points;
}

struct held_amount held_history_peak(const struct held_history *history, uint64_t *ret_time_ns)
{
	*ret_time_ns = history->most_ns;
	return history->most;
}

struct held_amount held_history_at_peak(const struct held_history *history, uint32_t stack_id)
{
	const struct stack_amount *stack;

	if (stack_id >= history->max_stack)
		return (struct held_amount){0};
	stack = &history->stacks[stack_id];
	return stack->peak == history->peak ? stack->at_peak : stack->now;
}

uint32_t held_history_max_stack(const struct held_history *history)
{
	return history->max_stack;
}
