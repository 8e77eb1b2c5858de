/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tree format: a call tree for a terminal.
 *
 *      HELD       %  BLOCKS
 *   60.0 KiB  100.0      20  load_font  fonts.c:40  [server]
 *   45.0 KiB   75.0      15  +- handle_request  server.c:99
 *                            |  main  server.c:130
 *   15.0 KiB   25.0       5  `- preload  server.c:80
 *
 * A line without numbers continues the chain above it. The tree indents only where paths fork.
 */
#include "report/formats/formats.h"
#include "report/text/leak_words.h"
#include "report/trees/report_tree.h"
#include "report/trees/tree_printer.h"

#include <ctype.h>
#include <errno.h>

static int write_nothing(FILE *out, const struct leak_report *report)
{
	const char *text = leak_words_nothing(report);

	fprintf(out, "%c%s.\n", toupper(*text), text + 1);
	return 0;
}

static int write_report(FILE *out, const struct report_input *input)
{
	bool is_proven = input->report->worst == REACH_GROUP_LOST;
	struct tree_look look = {.options = input->tree, .has_lost = input->report->reach};
	struct call_tree *tree;
	int err;

	look.lost_words = is_proven ? "PROVEN LOST" : "NO HOLDER";
	look.held_words = is_proven ? "held" : "pointed to";
	if (!leak_report_has_held(input->report))
		return write_nothing(out, input->report);
	err = report_tree_create(input->report, input->tree, &tree);
	if (err)
		return err;
	look.weight = report_tree_weight(tree);
	look.whole = (double)call_tree_root(tree)->total.of[look.weight];
	tree_print(out, tree, &look);
	call_tree_destroy(tree);
	return ferror(out) ? -EIO : 0;
}

const struct report_format tree_format = {
	.name = "tree", .says_why_empty = true, .write = write_report};
