/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKPARSE_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKPARSE_OPTIONS_H

#include "report/text/leaks_writer.h"
#include "report/report_formats.h"
#include "report/watch/watch.h"

/* The pointers lead into this structure and into argv. */
struct leakparse_options {
	const char **inputs; /* the files of one session, in order; none: standard input */
	size_t nr_inputs;
	struct leaks_options leaks;
	struct stack_store_options stacks;
	bool own_mappings; /* count the mappings that allocators make for themselves, too */
	bool summary;	   /* one screen, not the leaks text */
	size_t call_sites; /* the row of that screen whose calls are listed instead; 0: none */
	bool at_peak;	   /* --at peak */
	uint64_t at_ns;	   /* --at: time after the start; 0: the end */
	bool diff;	   /* changes between marks, or in a range of time */
	bool has_range;	   /* --from, --to: since the recording's start */
	uint64_t from_ns, to_ns;
	uint64_t every_ns; /* changes in each period of that length; 0: between marks */
	const struct report_format *format; /* NULL: the leaks text */
	struct tree_options tree;
	bool shapes_tree;	 /* an option for the look of a tree was given */
	const char *output;	 /* NULL: standard output */
	struct leak_limit limit; /* --fail-on-leak */
	const char *on_leak;	 /* NULL: no command */
	const char *live_dir;	 /* --from-live: its state is read instead of a recording */
	bool watches;		 /* --every is about these or --summary, not about changes */

	/* What @leaks points to. */
	struct size_range size;
	regex_t stack;
	struct suppressions suppressions;
};

/*
 * Returns 0, 1 if --help or --version was answered, or a negative errno, reported (-EINVAL: bad
 * usage). Call leakparse_options_deinit() in each case.
 */
int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options);
void leakparse_options_deinit(struct leakparse_options *options);

#endif
