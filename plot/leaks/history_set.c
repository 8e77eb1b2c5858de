/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/history_set.h"

#include "common/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* leakparse writes fewer; more than these are ignored to bound memory use. */
#define STACKS_MAX 1024

static int add_verdict(struct history_set *set, const struct stack_verdict *verdict)
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
	set->verdicts[set->nr_verdicts++] = *verdict;
	return 0;
}

int history_set_add_verdict(struct history_set *set, const struct leaks_stack *stack, bool is_part)
{
	return add_verdict(set, &(struct stack_verdict){
					.stack = stack->stack,
					.is_part = is_part,
					.verdict = plot_verdict_find(stack->verdict),
					.is_pool = user_frame_is_pool(stack->function),
					.has_rate = stack->has_rate,
					.bytes_per_s = stack->bytes_per_s,
					.blocks_per_s = stack->blocks_per_s,
				});
}

int history_set_add_cause(struct history_set *set, const struct leaks_cause *cause)
{
	return add_verdict(set, &(struct stack_verdict){
					.stack = cause->number,
					.is_cause = true,
					.verdict = plot_verdict_find(cause->verdict),
					.has_rate = cause->has_rate,
					.bytes_per_s = cause->bytes_per_s,
					.blocks_per_s = cause->blocks_per_s,
				});
}

static void set_verdict(const struct history_set *set, struct stack_history *kept, bool is_cause)
{
	kept->verdict.verdict = PLOT_NO_VERDICT;
	for (size_t i = 0; i < set->nr_verdicts; i++)
		if (set->verdicts[i].stack == kept->stack &&
		    set->verdicts[i].is_cause == is_cause) {
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
		.at_peak_bytes = history->at_peak_bytes,
		.at_peak_blocks = history->at_peak_blocks,
		.most_bytes = history->at_peak_bytes,
		.most_blocks = history->at_peak_blocks,
	};
	if (!ret->held_bytes || !ret->held_blocks || !ret->lifetimes) {
		deinit_history(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < history->nr; i++) {
		if (history->held_bytes[i] > ret->most_bytes)
			ret->most_bytes = history->held_bytes[i];
		if (history->held_blocks[i] > ret->most_blocks)
			ret->most_blocks = history->held_blocks[i];
	}
	return 0;
}

int history_set_add(struct history_set *set, const struct leaks_periods *periods,
		    const struct leaks_history *history, struct stack_history **ret)
{
	struct stack_history *stacks, *kept = &set->all;
	int err;

	*ret = NULL;
	/* leakparse never changes the periods within a file. */
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
	if (history->is_all) {
		set->has_all = true;
		return 0;
	}
	set->nr++;
	set_verdict(set, kept, history->is_cause);
	*ret = kept;
	return 0;
}

static int compare_amounts(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int compare_histories(const void *a, const void *b, void *context)
{
	const struct history_set *set = context;
	int order = compare_amounts(stack_history_end(set, a), stack_history_end(set, b));

	if (!order)
		order = compare_amounts(stack_history_most(set, a), stack_history_most(set, b));
	return order ? order
		     : compare_amounts(((const struct stack_history *)b)->stack,
				       ((const struct stack_history *)a)->stack);
}

void history_set_arrange(struct history_set *set, bool (*is_part)(const struct leak_group *group))
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr; i++) {
		if (is_part(set->stacks[i].group))
			deinit_history(&set->stacks[i]);
		else
			set->stacks[nr++] = set->stacks[i];
	}
	set->nr = nr;
	if (nr)
		qsort_r(set->stacks, nr, sizeof(*set->stacks), compare_histories, set);
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

bool history_set_counts_blocks(const struct history_set *set)
{
	return !set->all.most_bytes;
}

const uint64_t *stack_history_amounts(const struct history_set *set,
				      const struct stack_history *history)
{
	return history_set_counts_blocks(set) ? history->held_blocks : history->held_bytes;
}

uint64_t stack_history_at_peak(const struct history_set *set, const struct stack_history *history)
{
	return history_set_counts_blocks(set) ? history->at_peak_blocks : history->at_peak_bytes;
}

uint64_t stack_history_most(const struct history_set *set, const struct stack_history *history)
{
	return history_set_counts_blocks(set) ? history->most_blocks : history->most_bytes;
}

uint64_t stack_history_end(const struct history_set *set, const struct stack_history *history)
{
	return set->periods.nr ? stack_history_amounts(set, history)[set->periods.nr - 1] : 0;
}

double stack_verdict_rate(const struct history_set *set, const struct stack_verdict *verdict)
{
	return history_set_counts_blocks(set) ? verdict->blocks_per_s : verdict->bytes_per_s;
}

struct quantity_unit history_set_unit(const struct history_set *set, uint64_t amount)
{
	return history_set_counts_blocks(set) ? (struct quantity_unit){"blocks", 1}
					      : quantity_unit_for(amount);
}

struct quantity_text history_set_text(const struct history_set *set, uint64_t amount)
{
	struct quantity_text text;

	if (!history_set_counts_blocks(set))
		return quantity_size(amount);
	snprintf(text.text, sizeof(text.text), "%" PRIu64 "%s", amount,
		 amount == 1	       ? " block"
		 : amount < 1000000000 ? " blocks"
				       : "");
	return text;
}
