/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The massif format, for ms_print and massif-visualizer: held bytes over time, with a call tree of
 * the peak and one of the end. "#" begins a comment, so names must not contain it.
 */
#include "common/diag.h"
#include "common/quantity.h"
#include "report/formats/formats.h"
#include "report/formats/held_history.h"
#include "report/trees/call_tree.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_DEPTH 60 /* ms_print recurses and indents each level by two columns */

struct snapshots {
	FILE *out;
	const struct report_input *input;
	uint64_t start_ns;
	size_t nr;
};

static int64_t clamp(uint64_t amount)
{
	return amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
}

static void write_snapshot(struct snapshots *snapshots, uint64_t time_ns, uint64_t bytes,
			   const char *tree)
{
	uint64_t since = time_ns > snapshots->start_ns ? time_ns - snapshots->start_ns : 0;

	fprintf(snapshots->out,
		"#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
		"\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		snapshots->nr++, since / 1000000, bytes, tree);
}

static int64_t bytes_of(const struct call_node *node)
{
	return node->total.of[CALL_HELD_BYTES];
}

static bool is_shown(const struct snapshots *snapshots, const struct call_node *root,
		     const struct call_node *node)
{
	return (double)bytes_of(node) >=
	       (double)bytes_of(root) * snapshots->input->tree->threshold_percent / 100;
}

static void write_node(struct snapshots *snapshots, const struct call_node *root,
		       const struct call_node *node)
{
	FILE *out = snapshots->out;
	uint32_t nr = 0;

	/* All children that are not shown share one line. */
	for (const struct call_node *child = node->first; child && node->depth < MAX_DEPTH;
	     child = child->next) {
		nr++;
		if (!is_shown(snapshots, root, child))
			break;
	}
	fprintf(out, "%*sn%" PRIu32 ": %" PRId64 " ", (int)node->depth, "", nr, bytes_of(node));
	if (node == root) {
		fputs("(all that was held)\n", out);
		return;
	}
	fputs("0x0: ", out);
	diag_print_escaped(out, node->name, "#");
	if (node->file) {
		fputs(" (", out);
		diag_print_escaped(out, named_stack_basename(node->file), "#");
		fprintf(out, ":%d)", node->first_line);
	} else if (node->module) {
		fputs(" (in ", out);
		diag_print_escaped(out, node->module, "#");
		fputc(')', out);
	}
	fputc('\n', out);
}

/* Writes one line for @first and its later siblings, which are below the threshold. */
static void write_rest(struct snapshots *snapshots, const struct call_node *first)
{
	int64_t bytes = 0;
	size_t nr = 0;

	for (const struct call_node *node = first; node; node = node->next, nr++)
		bytes = call_weight_sum(bytes, bytes_of(node));
	fprintf(snapshots->out,
		"%*sn0: %" PRId64 " in %zu place%s, all below massif's threshold (%.2f%%)\n",
		(int)first->depth, "", bytes, nr, quantity_plural(nr),
		snapshots->input->tree->threshold_percent);
}

static void write_tree(struct snapshots *snapshots, struct call_tree *tree)
{
	const struct call_node *root = call_tree_root(tree), *node = root;

	call_tree_sort(tree, CALL_HELD_BYTES);
	while (node) {
		if (!is_shown(snapshots, root, node)) {
			write_rest(snapshots, node);
			node = call_tree_skip(node->parent);
			continue;
		}
		write_node(snapshots, root, node);
		node = node->depth < MAX_DEPTH ? call_tree_next(node) : call_tree_skip(node);
	}
}

static int add_peak(struct call_tree *tree, const struct report_input *input)
{
	uint32_t max = held_history_max_stack(input->history);
	int err = 0;

	for (uint32_t id = 0; id < max && !err; id++) {
		struct held_amount amount = held_history_at_peak(input->history, id);
		const struct call_weights weights = {
			.of = {[CALL_HELD_BYTES] = clamp(amount.bytes),
			       [CALL_HELD_BLOCKS] = clamp(amount.blocks)},
		};

		if (amount.blocks)
			err = call_tree_add(tree, NULL, input->report->analysis->stacks, id,
					    &weights);
	}
	return err;
}

/* Writes a snapshot with a tree. */
static int write_detailed(struct snapshots *snapshots, uint64_t time_ns, bool is_peak)
{
	const struct report_input *input = snapshots->input;
	const struct call_tree_options options = {.max_depth = input->tree->depth};
	struct call_tree *tree;
	int err = call_tree_create(&options, &tree);

	if (err)
		return err;
	err = is_peak ? add_peak(tree, input) : call_tree_add_report(tree, input->report);
	if (!err) {
		write_snapshot(snapshots, time_ns, (uint64_t)bytes_of(call_tree_root(tree)),
			       is_peak ? "peak" : "detailed");
		write_tree(snapshots, tree);
	}
	call_tree_destroy(tree);
	return err;
}

static int write_report(FILE *out, const struct report_input *input)
{
	const struct analysis *analysis = input->report->analysis;
	struct snapshots snapshots = {.out = out, .input = input};
	uint64_t period_ns, peak_ns;
	size_t nr;
	const struct held_amount *points =
		held_history_points(input->history, &nr, &snapshots.start_ns, &period_ns);
	bool has_peak = held_history_peak(input->history, &peak_ns).bytes > 0;
	int err = held_history_error(input->history);

	fputs("desc: held memory, by leakparse " LEAKTOOLS_VERSION "\ncmd: (recorded by leakrec)\n"
	      "time_unit: ms\n",
	      out);
	for (size_t i = 0; i < nr && !err; i++) {
		uint64_t end_ns = snapshots.start_ns + (i + 1) * period_ns;

		if (has_peak && peak_ns < end_ns) {
			err = write_detailed(&snapshots, peak_ns, true);
			has_peak = false;
		}
		/* The last period is that of the final snapshot, which has a tree. */
		if (!err && i + 1 < nr)
			write_snapshot(&snapshots, end_ns, points[i].bytes, "empty");
	}
	if (!err)
		err = write_detailed(&snapshots, analysis->end_ns, false);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format massif_format = {
	.name = "massif",
	.needs_history = true,
	.shows_history = true,
	.ignores_selections = true,
	.write = write_report,
};
