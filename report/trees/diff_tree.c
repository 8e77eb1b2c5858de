/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/diff_tree.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "report/trees/tree_printer.h"

#include <inttypes.h>
#include <math.h>

static void write_time(FILE *out, const struct analysis *analysis, uint64_t time_ns,
		       const struct interval_mark *mark)
{
	fprintf(out, "%.3f s",
		time_ns > analysis->start_ns ? (double)(time_ns - analysis->start_ns) / 1e9 : 0);
	if (mark->text) {
		fputs(" (mark \"", out);
		diag_print_escaped(out, mark->text, "\"");
		fputs("\")", out);
	} else if (mark->number) {
		fprintf(out, " (mark %" PRIu64 ")", mark->number);
	}
}

/* "1.000 s (mark 1) to 2.000 s (mark 2) after the start: +483 KiB in +161 blocks" */
static void write_heading(FILE *out, const struct diff_interval *diff)
{
	const struct interval *interval = diff->interval;

	write_time(out, diff->analysis, interval->begin_ns, &interval->begin_mark);
	fputs(" to ", out);
	write_time(out, diff->analysis, interval->end_ns, &interval->end_mark);
	fprintf(out, " after the start: %c", interval->bytes < 0 ? '-' : '+');
	fputs(quantity_bytes(fabs((double)interval->bytes)).text, out);
	fprintf(out, " in %+" PRId64 " blocks\n", interval->blocks);
}

static int add_changes(struct call_tree *tree, const struct diff_interval *diff)
{
	for (size_t i = 0; i < diff->nr_shown; i++) {
		const struct interval_change *change = &diff->interval->changes[i];
		struct call_weights weights = {0};
		int err;

		weights.of[CALL_HELD_BYTES] = change->bytes;
		weights.of[CALL_HELD_BLOCKS] = change->blocks;
		err = call_tree_add(tree, NULL, diff->analysis->stacks, change->stack_id, &weights);
		if (err)
			return err;
	}
	return 0;
}

/* The sum of all growth or, if nothing grew, of all shrinkage: 100 %. */
static double whole_of(const struct interval *interval, enum call_weight weight)
{
	double added = 0, freed = 0;

	for (size_t i = 0; i < interval->nr_changes; i++) {
		const struct interval_change *change = &interval->changes[i];
		double amount =
			(double)(weight == CALL_HELD_BYTES ? change->bytes : change->blocks);

		if (amount > 0)
			added += amount;
		else
			freed -= amount;
	}
	return added > 0 ? added : freed;
}

int diff_tree_write(const void *context, FILE *out, const struct diff_interval *diff)
{
	const struct tree_options *options = context;
	const struct call_tree_options call_options = tree_options_for_call_tree(options);
	struct tree_look look = {.options = options, .is_change = true};
	struct call_tree *tree;
	int err = call_tree_create(&call_options, &tree);

	if (err)
		return err;
	err = add_changes(tree, diff);
	write_heading(out, diff);
	if (!err && diff->interval->nr_changes) {
		look.weight = CALL_HELD_BYTES;
		look.whole = whole_of(diff->interval, look.weight);
		if (look.whole <= 0) {
			look.weight = CALL_HELD_BLOCKS;
			look.whole = whole_of(diff->interval, look.weight);
		}
		call_tree_sort(tree, look.weight);
		tree_print(out, tree, &look);
	} else if (!err) {
		fputs("No stack holds more or less than before.\n", out);
	}
	fputc('\n', out);
	call_tree_destroy(tree);
	return err;
}
