/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/trees/tree_printer.h"

#include "common/colour.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/wrapped_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A chain is a path of nodes with one child each. Long ones lose their middle. */
#define MAX_CHAIN	12
#define CHAIN_HEAD	8
#define CHAIN_TAIL	2
#define NUMBERS_COLUMNS 31 /* before a frame */
#define LOST_COLUMNS	12 /* more of them */
#define MIN_NAME	12
#define MAX_LEVELS	40 /* deeper levels are not indented further */

struct printer {
	FILE *out;
	const struct tree_look *look;
	const struct tree_options *options; /* look->options */
	const struct call_node *root;
	size_t level;		  /* of the branch being printed; 0 for children of the root */
	bool is_open[MAX_LEVELS]; /* more branches follow at that level */
	const char *module;	  /* of the previous line */
};

/* The children of a node that are too small to be shown. */
struct rest {
	uint64_t nr;
	struct call_weights total;
};

static bool is_shown(const struct printer *printer, const struct call_node *node)
{
	const struct tree_look *look = printer->look;

	return fabs((double)node->total.of[look->weight]) >=
	       look->whole * look->options->threshold_percent / 100;
}

/* @node or the first later sibling that is shown, or NULL. */
static const struct call_node *next_shown(const struct printer *printer,
					  const struct call_node *node)
{
	while (node && !is_shown(printer, node))
		node = node->next;
	return node;
}

/* Whether any path ends at @node. In a change, bytes may differ while blocks do not. */
static bool ends_here(const struct call_node *node)
{
	return node->self.of[CALL_HELD_BLOCKS] || node->self.of[CALL_HELD_BYTES];
}

static struct rest rest_of(const struct printer *printer, const struct call_node *node)
{
	struct rest rest = {0};

	for (const struct call_node *child = node->first; child; child = child->next) {
		/* Additions and frees that cancel out are no change. */
		if (is_shown(printer, child) ||
		    (!child->total.of[CALL_HELD_BYTES] && !child->total.of[CALL_HELD_BLOCKS]))
			continue;
		rest.nr++;
		for (int i = 0; i < CALL_NR_WEIGHTS; i++)
			rest.total.of[i] = call_weight_sum(rest.total.of[i], child->total.of[i]);
	}
	return rest;
}

/* Whether all paths through @node continue in its only child. */
static bool is_chained(const struct call_node *node)
{
	return node->nr_children == 1 && !ends_here(node);
}

/* The colours of perf report. */
static enum colour colour_of(double percent)
{
	return fabs(percent) >= 5 ? COLOUR_RED : fabs(percent) >= 0.5 ? COLOUR_GREEN : COLOUR_NONE;
}

static int numbers_columns(const struct printer *printer)
{
	return NUMBERS_COLUMNS + (printer->look->has_lost ? LOST_COLUMNS : 0);
}

static void write_numbers(const struct printer *printer, const struct call_weights *weights)
{
	const struct tree_look *look = printer->look;
	int64_t bytes = weights->of[CALL_HELD_BYTES], blocks = weights->of[CALL_HELD_BLOCKS];
	double amount = (double)weights->of[look->weight];
	double percent = look->whole > 0 ? 100 * amount / look->whole : 0;
	char words[32] = "";
	FILE *memory = fmemopen(words, sizeof(words), "w");

	if (memory) {
		if (look->is_change)
			fputc(bytes < 0 ? '-' : '+', memory);
		fputs(quantity_bytes(fabs((double)bytes)).text, memory);
		fclose(memory);
	}
	fprintf(printer->out, "%12s ", words);
	colour_begin(printer->out, printer->options->colour, colour_of(percent));
	fprintf(printer->out, "%6.1f", percent);
	colour_end(printer->out, printer->options->colour, colour_of(percent));
	fprintf(printer->out, look->is_change ? " %+9" PRId64 : " %9" PRId64, blocks);
	if (look->has_lost)
		fprintf(printer->out, "%*s", LOST_COLUMNS,
			weights->of[CALL_LOST_BYTES]
				? quantity_bytes((double)weights->of[CALL_LOST_BYTES]).text
				: "-");
	fputs("  ", printer->out);
}

static void write_indentation(const struct printer *printer, bool is_branch, bool is_last)
{
	bool utf8 = printer->options->utf8;
	size_t level = printer->level < MAX_LEVELS ? printer->level : MAX_LEVELS - 1;

	/* Branches of the first level have no lines: each begins a tree. */
	for (size_t i = 1; i < level; i++)
		fputs(!printer->is_open[i] ? "   " : utf8 ? "│  " : "|  ", printer->out);
	if (!level)
		return;
	if (!is_branch)
		fputs(is_last ? "   " : utf8 ? "│  " : "|  ", printer->out);
	else if (is_last)
		fputs(utf8 ? "└─ " : "`- ", printer->out);
	else
		fputs(utf8 ? "├─ " : "+- ", printer->out);
}

/* What a line says of a frame besides its name. */
enum frame_part { PART_NAME, PART_FILE, PART_MODULE, NR_PARTS };

static void write_part(FILE *out, const struct call_node *node, enum frame_part part)
{
	switch (part) {
	case PART_FILE:
		fputs("  ", out);
		diag_print_escaped(out, named_stack_basename(node->file), NULL);
		if (node->first_line)
			fprintf(out, ":%d", node->first_line);
		if (node->last_line > node->first_line)
			fprintf(out, "-%d", node->last_line);
		break;
	case PART_MODULE:
		fputs("  [", out);
		diag_print_escaped(out, named_stack_basename(node->module), NULL);
		fputs("]", out);
		break;
	default:
		diag_print_escaped(out, node->name, NULL);
	}
}

/* The columns that are left for a frame. */
static size_t columns_left(const struct printer *printer)
{
	size_t level = printer->level < MAX_LEVELS ? printer->level : MAX_LEVELS - 1;
	size_t used = (size_t)numbers_columns(printer) + 3 * level,
	       columns = printer->options->columns;

	if (!columns)
		return SIZE_MAX;
	return columns > used ? columns - used : 0;
}

/* Writes @text, or as much of it as there is room for, but not too little. */
static void write_cut(const struct printer *printer, const char *text, size_t left)
{
	if (wrapped_text_columns(text) <= left)
		fputs(text, printer->out);
	else
		fprintf(printer->out, "%.*s...",
			(int)wrapped_text_bytes(text, left > MIN_NAME ? left - 3 : MIN_NAME), text);
}

/* Writes as much of a frame as the line has room for, but the beginning of its name in any case. */
static void write_name(struct printer *printer, const struct call_node *node)
{
	const bool has_part[NR_PARTS] = {
		[PART_NAME] = true,
		[PART_FILE] = node->file,
		[PART_MODULE] = node->module &&
				(!printer->module || strcmp(printer->module, node->module) != 0),
	};
	size_t left = columns_left(printer);

	for (enum frame_part part = 0; part < NR_PARTS; part++) {
		_cleanup_free_ char *text = NULL;
		size_t size, columns;
		FILE *out = has_part[part] ? open_memstream(&text, &size) : NULL;

		if (!out)
			continue;
		write_part(out, node, part);
		if (fclose(out))
			continue;
		columns = wrapped_text_columns(text);
		if (part == PART_NAME)
			write_cut(printer, text, left);
		else if (columns <= left)
			fputs(text, printer->out);
		left -= columns < left ? columns : left;
	}
	if (node->module)
		printer->module = node->module;
	fputc('\n', printer->out);
}

static bool has_lines_below(const struct call_node *parent, const struct rest *rest)
{
	return rest->nr || (ends_here(parent) && parent->nr_children);
}

static void begin_continued_line(const struct printer *printer, bool is_last)
{
	fprintf(printer->out, "%*s", numbers_columns(printer), "");
	write_indentation(printer, false, is_last);
}

static bool has_holder(const struct call_node *node)
{
	return node->parent && node->holder && *node->holder;
}

/* What a scan named, where all paths of a branch have it, and not again in its branches. */
static void write_holder(const struct printer *printer, const struct call_node *node, bool is_last)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out =
		has_holder(node) && !has_holder(node->parent) ? open_memstream(&text, &size) : NULL;

	if (!out)
		return;
	fprintf(out, "(%s by ", printer->look->held_words);
	diag_print_escaped(out, node->holder, NULL);
	fputs(node->has_other_holders ? " and others)" : ")", out);
	if (fclose(out))
		return;
	begin_continued_line(printer, is_last);
	write_cut(printer, text, columns_left(printer));
	fputc('\n', printer->out);
}

static size_t chain_length(const struct call_node *node)
{
	size_t length = 0;

	for (; is_chained(node); node = node->first)
		length++;
	return length;
}

/*
 * Writes a branch up to its first fork or end, and returns that node. Long chains, which
 * interpreters have, lose their middle unless the threshold is 0.
 */
static const struct call_node *write_branch(struct printer *printer, const struct call_node *node,
					    bool is_last)
{
	const struct call_node *first = node;
	size_t length = chain_length(node);
	bool is_cut = length > MAX_CHAIN && printer->options->threshold_percent > 0;

	write_numbers(printer, &node->total);
	write_indentation(printer, true, is_last);
	write_name(printer, node);
	for (size_t i = 0; i < length; i++) {
		node = node->first;
		if (is_cut && i >= CHAIN_HEAD && i < length - CHAIN_TAIL) {
			if (i > CHAIN_HEAD)
				continue;
			begin_continued_line(printer, is_last);
			fprintf(printer->out, "(%zu more frames)\n",
				length - CHAIN_HEAD - CHAIN_TAIL);
			continue;
		}
		begin_continued_line(printer, is_last);
		write_name(printer, node);
	}
	write_holder(printer, first, is_last);
	return node;
}

/* The lines after the last branch of a node. */
static void write_rest(struct printer *printer, const struct call_node *parent,
		       const struct rest *rest)
{
	if (ends_here(parent) && parent->nr_children) {
		write_numbers(printer, &parent->self);
		write_indentation(printer, true, !rest->nr);
		fputs("(stacks that end here)\n", printer->out);
	}
	if (rest->nr) {
		write_numbers(printer, &rest->total);
		write_indentation(printer, true, true);
		fprintf(printer->out, "(%" PRIu64 " %s, each below %g %%)\n", rest->nr,
			quantity_word(rest->nr, "other", "others"),
			printer->options->threshold_percent);
	}
	printer->module = NULL;
}

/* The first node of the branch that ends at @node. */
static const struct call_node *beginning_of(const struct call_node *node)
{
	while (node->parent && node->parent->parent && is_chained(node->parent))
		node = node->parent;
	return node;
}

static void write_tree(struct printer *printer)
{
	const struct call_node *parent = printer->root, *node = parent->first;

	while (true) {
		struct rest rest = rest_of(printer, parent);

		node = next_shown(printer, node);
		if (!node) {
			write_rest(printer, parent, &rest);
			if (parent == printer->root)
				return;
			node = beginning_of(parent);
			parent = node->parent;
			node = node->next;
			printer->level--;
			continue;
		}
		bool is_last = !next_shown(printer, node->next) && !has_lines_below(parent, &rest);
		const struct call_node *end = write_branch(printer, node, is_last);

		if (!end->nr_children) {
			node = node->next;
			printer->module = parent->module;
			continue;
		}
		if (printer->level < MAX_LEVELS)
			printer->is_open[printer->level] = !is_last;
		printer->level++;
		parent = end;
		node = end->first;
	}
}

void tree_print(FILE *out, const struct call_tree *tree, const struct tree_look *look)
{
	struct printer printer = {
		.out = out,
		.look = look,
		.options = look->options,
		.root = call_tree_root(tree),
	};

	colour_begin(out, look->options->colour, COLOUR_BOLD);
	fprintf(out, "%12s %6s %9s", look->is_change ? "ADDED" : "HELD", "%", "BLOCKS");
	if (look->has_lost)
		fprintf(out, "%*s", LOST_COLUMNS, look->lost_words);
	fprintf(out, "  %s",
		look->options->main_first ? "FROM main DOWN TO THE ALLOCATOR"
					  : "FROM THE ALLOCATOR TO ITS CALLERS");
	colour_end(out, look->options->colour, COLOUR_BOLD);
	fputc('\n', out);
	write_tree(&printer);
	write_numbers(&printer, &printer.root->total);
	fputs("total\n", out);
	if (call_tree_nr_cut(tree))
		fprintf(out, "%" PRIu64 " stack%s cut short: the tree is too large\n",
			call_tree_nr_cut(tree),
			quantity_word(call_tree_nr_cut(tree), " is", "s are"));
}
