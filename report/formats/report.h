/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was found, in the format that is asked for by name: for people, or for other tools. All
 * formats show the same thing, a leak_report; each has one file, FORMAT_format.c, which escapes the
 * target's names as its readers need it.
 */
#ifndef LEAKTOOLS_REPORT_REPORT_H
#define LEAKTOOLS_REPORT_REPORT_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

struct held_history;

enum report_grouping {
	REPORT_BY_FUNCTION,
	REPORT_BY_FILE,
	REPORT_BY_MODULE,
	REPORT_BY_THREAD, /* functions, below the thread that allocated */
	REPORT_BY_SIZE,	  /* functions, below the blocks' size */
};

/* How trees look; other formats have no use for it. */
struct report_options {
	bool main_first; /* --inverted */
	size_t depth;	 /* only so many innermost frames; 0: all */
	enum report_grouping by;
	double threshold_percent; /* what is smaller is summed */
	bool utf8;		  /* the reader can show it */
	bool colour;		  /* the same */
};

#define REPORT_DEFAULT_THRESHOLD 1.0

struct report_input {
	const struct leak_report *report;
	const struct report_options *options;
	const struct held_history *history; /* where the format needs it, else NULL */
};

struct report_format {
	const char *name;
	bool is_binary;	    /* not for a terminal */
	bool needs_history; /* of what was held when (held_history.h) */
	bool is_of_all;	    /* nothing but --size selects what it tells of */
	/* Returns 0, -ENOMEM, or -EIO if the stream failed; reports nothing. */
	int (*write)(FILE *out, const struct report_input *input);
};

/* NULL: there is no such format. */
const struct report_format *report_format_find(const char *name);
/* All of them; the last has no name. */
const struct report_format *report_format_list(void);

/* Writes the whole report. Returns what format->write() does. */
int report_write(FILE *out, const struct report_format *format, const struct report_input *input);

#endif
