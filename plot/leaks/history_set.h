/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a `leaks` file tells of stacks over time, kept for plots. Pure data. */
#ifndef LEAKTOOLS_PLOT_HISTORY_SET_H
#define LEAKTOOLS_PLOT_HISTORY_SET_H

#include "common/quantity.h"
#include "plot/leaks/leaks_reader.h"
#include "plot/labels/plot_colours.h"
#include "plot/labels/stack_label.h"

struct stack_verdict {
	uint32_t stack;
	enum plot_verdict verdict; /* PLOT_NO_VERDICT: it holds nothing */
	bool has_rate;		   /* it grows */
	double bytes_per_s, blocks_per_s;
};

struct stack_history {
	uint32_t stack;
	struct stack_label label;
	struct stack_verdict verdict;
	uint64_t *held_bytes; /* history_set.periods.nr of them */
	uint64_t *held_blocks;
	uint64_t most_bytes, most_blocks; /* of these */
	struct leaks_lifetime *lifetimes;
	size_t nr_lifetimes;
};

struct history_set {
	struct leaks_periods periods; /* nr is 0: the file tells nothing */
	struct stack_history all;     /* of all stacks, those that are not in @stacks too */
	bool has_all;
	struct stack_history *stacks; /* in the file's order: those that held most first */
	size_t nr;
	struct stack_verdict *verdicts; /* they come before the histories */
	size_t nr_verdicts, nr_verdicts_allocated;
};

/* Return 0 or -ENOMEM, not reported. *@ret, or NULL, is for the frames that follow. */
int history_set_add_verdict(struct history_set *set, const struct leaks_stack *stack);
int history_set_add(struct history_set *set, const struct leaks_periods *periods,
		    const struct leaks_history *history, struct stack_label **ret);

/* Frees what @set holds. */
void history_set_deinit(struct history_set *set);

/*
 * What is shown of the histories: bytes, but blocks where nothing ever had bytes, as of files and
 * other handles. Amounts, the most of them, and the one at the end.
 */
bool history_set_counts_blocks(const struct history_set *set);
const uint64_t *stack_history_amounts(const struct history_set *set,
				      const struct stack_history *history);
uint64_t stack_history_most(const struct history_set *set, const struct stack_history *history);
uint64_t stack_history_end(const struct history_set *set, const struct stack_history *history);
double stack_verdict_rate(const struct history_set *set, const struct stack_verdict *verdict);

/* The unit for up to @amount, and the amount in words: "3 KiB", "12 blocks". */
struct quantity_unit history_set_unit(const struct history_set *set, uint64_t amount);
struct quantity_text history_set_text(const struct history_set *set, uint64_t amount);

#endif
