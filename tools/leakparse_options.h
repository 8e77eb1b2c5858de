/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKPARSE_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKPARSE_OPTIONS_H

#include "report/text/leaks_writer.h"
#include "report/formats/report.h"

/* It points into itself and into argv. */
struct leakparse_options {
	const char **inputs; /* the files of one session, in order; none: standard input */
	size_t nr_inputs;
	struct leaks_options leaks;
	struct stack_store_options stacks;
	bool own_mappings; /* what allocators map for themselves counts, too */
	bool summary;	   /* one screen, not the leaks text */
	bool at_peak;	   /* what was held when most was */
	uint64_t at_ns;	   /* what was held that long after the start; 0: at the end */
	bool diff;	   /* what changed between marks, or in a range of time */
	bool has_range;	   /* --from, --to: since the recording's start */
	uint64_t from_ns, to_ns;
	uint64_t every_ns;		    /* changes of each so long time; 0: between marks */
	const struct report_format *format; /* NULL: the leaks text */
	struct report_options report;
	bool shapes_tree;   /* an option was given that says how a tree looks */
	const char *output; /* NULL: standard output */
	bool fail_on_leak;  /* where more than @fail_bytes, or any block if 0, are held */
	uint64_t fail_bytes;

	/* What @leaks points to. */
	struct size_range size;
	regex_t stack;
	struct suppressions suppressions;
};

/*
 * Returns 0, a negative errno after saying what is wrong (-EINVAL: bad usage), or 1 if --help or
 * --version was all.
 */
int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options);
void leakparse_options_deinit(struct leakparse_options *options);

#endif
