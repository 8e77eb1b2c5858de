/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/history_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* leakparse writes fewer; a file that has more is not worth their memory. */
#define STACKS_MAX 1024

int history_set_add_verdict(struct history_set *set, const struct leaks_stack *stack)
{
	if (set->nr_verdicts == set->nr_verdicts_allocated) {
		size_t nr = set->nr_verdicts ? set->nr_verdicts * 2 : 64;
		struct stack_verdict *grown =
			reallocarray(set->verdicts, nr, sizeof(*set->verdicts));

		if (!grown)
			return -ENOMEM;
		set->verdicts = grown;
		set->nr_verdicts_allocated = nr;
	}
	set->verdicts[set->nr_verdicts++] = (struct stack_verdict){
		.stack = stack->stack,
		.verdict = plot_verdict_find(stack->verdict),
		.has_rate = stack->has_rate,
		.bytes_per_s = stack->bytes_per_s,
	};
	return 0;
}

static void set_verdict(const struct history_set *set, struct stack_history *kept)
{
	kept->verdict.verdict = PLOT_NO_VERDICT;
	for (size_t i = 0; i < set->nr_verdicts; i++)
		if (set->verdicts[i].stack == kept->stack) {
			kept->verdict = set->verdicts[i];
			return;
		}
}

static void *copy(const void *array, size_t nr, size_t size)
{
	void *kept = calloc(nr + 1, size);

	return kept ? memcpy(kept, array, nr * size) : NULL;
}

static void deinit_history(struct stack_history *history)
{
	stack_label_clear(&history->label);
	free(history->held_bytes);
	free(history->held_blocks);
	free(history->lifetimes);
	*history = (struct stack_history){0};
}

static int keep(const struct leaks_history *history, struct stack_history *ret)
{
	*ret = (struct stack_history){
		.stack = history->stack,
		.held_bytes = copy(history->held_bytes, history->nr, sizeof(uint64_t)),
		.held_blocks = copy(history->held_blocks, history->nr, sizeof(uint64_t)),
		.lifetimes = copy(history->lifetimes, history->nr_lifetimes,
				  sizeof(*history->lifetimes)),
		.nr_lifetimes = history->nr_lifetimes,
	};
	if (!ret->held_bytes || !ret->held_blocks || !ret->lifetimes) {
		deinit_history(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < history->nr; i++)
		if (history->held_bytes[i] > ret->most_bytes)
			ret->most_bytes = history->held_bytes[i];
	return 0;
}

int history_set_add(struct history_set *set, const struct leaks_periods *periods,
		    const struct leaks_history *history, struct stack_label **ret)
{
	struct stack_history *stacks, *kept = &set->all;
	int err;

	*ret = NULL;
	/* A second set of periods would be another file's. */
	if (set->nr == STACKS_MAX || (set->periods.nr && set->periods.nr != periods->nr))
		return 0;
	set->periods = *periods;
	if (history->is_all) {
		deinit_history(kept);
	} else {
		stacks = reallocarray(set->stacks, set->nr + 1, sizeof(*stacks));
		if (!stacks)
			return -ENOMEM;
		set->stacks = stacks;
		kept = &stacks[set->nr];
	}
	err = keep(history, kept);
	if (err)
		return err;
	set->has_all |= history->is_all;
	set->nr += !history->is_all;
	set_verdict(set, kept);
	*ret = history->is_all ? NULL : &kept->label;
	return 0;
}

void history_set_deinit(struct history_set *set)
{
	for (size_t i = 0; i < set->nr; i++)
		deinit_history(&set->stacks[i]);
	deinit_history(&set->all);
	free(set->stacks);
	free(set->verdicts);
	*set = (struct history_set){0};
}

uint64_t stack_history_end_bytes(const struct history_set *set, const struct stack_history *history)
{
	return set->periods.nr ? history->held_bytes[set->periods.nr - 1] : 0;
}
