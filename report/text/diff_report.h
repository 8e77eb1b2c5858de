/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --diff: what changed between moments of a recording, as the `changes` text, version 1
 * (docs/leaks-format.md), or as somebody else writes it. Each interval is written when it is over,
 * so that a recording which comes through a pipe is told of while it goes on.
 */
#ifndef LEAKTOOLS_REPORT_DIFF_REPORT_H
#define LEAKTOOLS_REPORT_DIFF_REPORT_H

#include "common/size_range.h"
#include "parser/analysis/analysis.h"
#include "parser/analysis/intervals.h"

#include <stdio.h>

/* An interval that is over, of which the first @nr_shown changes are wanted. */
struct diff_interval {
	const struct analysis *analysis;
	const struct interval *interval;
	size_t nr_shown;
};

/* Writes one, instead of the `changes` text. Returns 0, or a negative errno, not reported. */
struct diff_writer {
	const void *context;
	int (*write)(const void *context, FILE *out, const struct diff_interval *diff);
};

struct diff_report {
	struct intervals *intervals; /* for analysis->intervals; its own */
	const struct analysis *analysis;
	const struct size_range *size; /* only blocks of these sizes; NULL: all */
	size_t top;		       /* only so many changes of an interval; 0: all */
	FILE *out;
	struct diff_writer writer; /* its write may be NULL */
	int err;		   /* the writer's first */
	size_t nr;		   /* of intervals, so far */
};

/*
 * Writes the first lines to @out. The stacks are @analysis's, which need not be initialised yet.
 * @writer may be NULL: the `changes` text. Returns 0 or -ENOMEM (reported).
 */
int diff_report_init(struct diff_report *report, const struct analysis *analysis, FILE *out,
		     const struct diff_writer *writer);
void diff_report_deinit(struct diff_report *report);

/* A heap_observer's on_change, with the report as its context. */
void diff_report_change(void *context, const struct heap_change *change);

/*
 * After the recording's end: writes the last interval. Returns 0, or a negative errno, reported;
 * errors of @out that were met before are among them.
 */
int diff_report_finish(struct diff_report *report);

#endif
