/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/watch/cause_memory.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

#define SAME_PART 10 /* of what a cause holds */

/* The numbers of the last two judgements that gave the mark; 0: none. */
struct mark {
	uint64_t last, before;
};

struct known_stack {
	uint64_t identity;
	struct mark marks[CAUSE_NR_MARKS];
	UT_hash_handle hh;
};

struct cause_memory {
	struct known_stack *stacks;
	uint64_t now; /* the number of this judgement */
};

struct cause_memory *cause_memory_create(void)
{
	return calloc(1, sizeof(struct cause_memory));
}

void cause_memory_destroy(struct cause_memory *memory)
{
	struct known_stack *stack, *next;

	if (!memory)
		return;
	HASH_ITER (hh, memory->stacks, stack, next) {
		HASH_DEL(memory->stacks, stack);
		free(stack);
	}
	free(memory);
}

void cause_memory_begin(struct cause_memory *memory)
{
	memory->now++;
}

static int find_stack(const struct cause_memory *memory, const struct leak_report *report,
		      const struct leak_site *site, uint64_t *ret_identity,
		      struct known_stack **ret)
{
	uint32_t stack_id = report->verdicts.sites[site->site].site->stack_id;
	int err = leak_report_stack_identity(report, stack_id, ret_identity);

	*ret = NULL;
	if (!err)
		HASH_FIND(hh, memory->stacks, ret_identity, sizeof(*ret_identity), *ret);
	return err;
}

int cause_memory_mark(struct cause_memory *memory, const struct leak_report *report,
		      const struct leak_cause *cause, enum cause_mark mark)
{
	for (size_t i = 0; i < cause->nr; i++) {
		struct known_stack *stack;
		uint64_t identity;
		int err = find_stack(memory, report, &report->sites_by_cause[cause->first + i],
				     &identity, &stack);

		if (err)
			return err;
		if (!stack) {
			stack = calloc(1, sizeof(*stack));
			if (!stack)
				return -ENOMEM;
			stack->identity = identity;
			HASH_ADD(hh, memory->stacks, identity, sizeof(identity), stack);
			if (!hash_added(stack)) {
				free(stack);
				return -ENOMEM;
			}
		}
		if (stack->marks[mark].last == memory->now)
			continue;
		stack->marks[mark].before = stack->marks[mark].last;
		stack->marks[mark].last = memory->now;
	}
	return 0;
}

static bool has_mark(const struct cause_memory *memory, const struct known_stack *stack,
		     enum cause_mark mark)
{
	const struct mark *of = &stack->marks[mark];

	if (mark == CAUSE_IS_REPORTED)
		return of->last > 0;
	return memory->now > 1 &&
	       (of->last == memory->now ? of->before : of->last) == memory->now - 1;
}

int cause_memory_had(const struct cause_memory *memory, const struct leak_report *report,
		     const struct leak_cause *cause, enum cause_mark mark, bool *ret)
{
	double sum = 0, all = 0;

	for (size_t i = 0; i < cause->nr; i++) {
		const struct leak_site *site = &report->sites_by_cause[cause->first + i];
		/* Some resources have no size. */
		double weight = (double)(cause->bytes ? site->bytes : site->blocks);
		struct known_stack *stack;
		uint64_t identity;
		int err = find_stack(memory, report, site, &identity, &stack);

		if (err)
			return err;
		all += weight;
		if (stack && has_mark(memory, stack, mark))
			sum += weight;
	}
	*ret = sum > 0 && sum * SAME_PART >= all;
	return 0;
}
