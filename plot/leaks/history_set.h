/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The histories and verdicts of a `leaks` file's stacks and causes, in memory for plots. */
#ifndef LEAKTOOLS_PLOT_HISTORY_SET_H
#define LEAKTOOLS_PLOT_HISTORY_SET_H

#include "common/quantity.h"
#include "plot/labels/plot_colours.h"
#include "plot/labels/stack_label.h"
#include "plot/leaks/leaks_reader.h"

struct leak_group;

struct stack_verdict {
	uint32_t stack; /* or the number of a cause */
	bool is_cause;
	bool is_part;		   /* of a cause */
	enum plot_verdict verdict; /* PLOT_NO_VERDICT: the stack holds nothing */
	bool is_pool;		   /* its blocks are of the program's own pools */
	bool has_rate;		   /* the stack grows */
	double bytes_per_s, blocks_per_s;
};

struct stack_history {
	uint32_t stack;		  /* or the number of a cause */
	struct leak_group *group; /* not owned; of history_set.all: NULL */
	struct stack_verdict verdict;
	uint64_t *held_bytes; /* history_set.periods.nr entries */
	uint64_t *held_blocks;
	uint64_t at_peak_bytes, at_peak_blocks; /* at history_set.periods.peak_ns */
	uint64_t most_bytes, most_blocks;	/* the maxima of these */
	struct leaks_lifetime *lifetimes;
	size_t nr_lifetimes;
};

struct history_set {
	struct leaks_periods periods; /* nr == 0: the file has no histories */
	struct stack_history all;     /* the sum of all stacks, including those not in @stacks */
	bool has_all;
	/*
	 * Of stacks and causes: those that hold most at the end first, then those with the largest
	 * peaks. Stacks of a cause that has a history are not among them.
	 */
	struct stack_history *stacks;
	size_t nr;
	struct stack_verdict *verdicts; /* the file has them before the histories */
	size_t nr_verdicts, nr_verdicts_allocated;
};

/*
 * Return 0 or -ENOMEM, unreported. *@ret is the stack whose group the caller has to set before it
 * adds another, or NULL.
 */
int history_set_add_verdict(struct history_set *set, const struct leaks_stack *stack, bool is_part);
int history_set_add_cause(struct history_set *set, const struct leaks_cause *cause);
int history_set_add(struct history_set *set, const struct leaks_periods *periods,
		    const struct leaks_history *history, struct stack_history **ret);

/*
 * Removes the stacks for which @is_part, and sorts the others. Call it when all have been added.
 */
void history_set_arrange(struct history_set *set, bool (*is_part)(const struct leak_group *group));

/* Frees the contents of @set. */
void history_set_deinit(struct history_set *set);

/*
 * Plots show bytes, or blocks if no block ever had bytes, as with file handles. These return the
 * amounts of a history, that at the peak, their maximum, and the last one, in bytes or blocks
 * accordingly.
 */
bool history_set_counts_blocks(const struct history_set *set);
const uint64_t *stack_history_amounts(const struct history_set *set,
				      const struct stack_history *history);
uint64_t stack_history_at_peak(const struct history_set *set, const struct stack_history *history);
uint64_t stack_history_most(const struct history_set *set, const struct stack_history *history);
uint64_t stack_history_end(const struct history_set *set, const struct stack_history *history);
double stack_verdict_rate(const struct history_set *set, const struct stack_verdict *verdict);

/* The unit for up to @amount, and the amount in words: "3 KiB", "12 blocks". */
struct quantity_unit history_set_unit(const struct history_set *set, uint64_t amount);
struct quantity_text history_set_text(const struct history_set *set, uint64_t amount);

#endif
