/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of an output format. All formats show the same leak_report; each is one file,
 * FORMAT_format.c, and escapes the target's names as its readers need it.
 */
#ifndef LEAKTOOLS_REPORT_REPORT_FORMAT_H
#define LEAKTOOLS_REPORT_REPORT_FORMAT_H

#include "parser/verdicts/leak_report.h"
#include "report/trees/tree_options.h"

#include <stdio.h>

struct held_history;
struct mark_changes;

struct report_input {
	const struct leak_report *report;
	const struct tree_options *tree;
	const struct held_history *history; /* NULL unless the format needs it */
	const struct mark_changes *changes; /* likewise; may be NULL */
};

struct report_format {
	const char *name;	 /* as --format takes it */
	bool is_binary;		 /* unfit for a terminal */
	bool needs_history;	 /* report_input.history must be set (held_history.h) */
	bool shows_history;	 /* and nothing else: in windows, that is not known */
	bool ignores_selections; /* of the options that select blocks, only --size applies */
	bool says_why_empty;	 /* people read in it why nothing is listed */
	/* Returns 0, -ENOMEM, or -EIO if the stream failed; prints no message. */
	int (*write)(FILE *out, const struct report_input *input);
};

#endif
