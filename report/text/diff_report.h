/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --diff: what changed between points in time of a recording. The output is the `changes`
 * text, version 1 (docs/leaks-format.md), or that of a diff_writer. Each interval is written as
 * soon as it ends, so a recording from a pipe is reported while it runs.
 */
#ifndef LEAKTOOLS_REPORT_DIFF_REPORT_H
#define LEAKTOOLS_REPORT_DIFF_REPORT_H

#include "common/size_range.h"
#include "parser/analysis/analysis.h"
#include "parser/analysis/intervals.h"

#include <stdio.h>

/* An interval that has ended. A writer shows the first @nr_shown changes. */
struct diff_interval {
	const struct analysis *analysis;
	const struct interval *interval;
	size_t nr_shown;
};

/* Writes one interval in place of the `changes` text. Returns 0 or a negative errno, unreported. */
struct diff_writer {
	const void *context;
	int (*write)(const void *context, FILE *out, const struct diff_interval *diff);
};

struct diff_report {
	struct intervals *intervals; /* owned; to be set as analysis->intervals */
	const struct analysis *analysis;
	const struct size_range *size; /* counts only blocks of these sizes; NULL: all */
	size_t limit;		       /* the most changes per interval; 0: all */
	FILE *out;
	struct diff_writer writer; /* writer.write == NULL: the `changes` text */
	int err;		   /* the writer's first error */
	int write_errno;	   /* of @out, the first one */
	size_t nr;		   /* intervals written so far */
};

/*
 * Writes the header lines to @out. @analysis provides the stacks; it may be initialised later.
 * @writer is NULL for the `changes` text. Returns 0 or -ENOMEM, reported.
 */
int diff_report_init(struct diff_report *report, const struct analysis *analysis, FILE *out,
		     const struct diff_writer *writer);
void diff_report_deinit(struct diff_report *report);

/* A heap_observer.on_change() with the report as its context. */
void diff_report_change(void *context, const struct heap_change *change);

/* An analysis_ticks.on_tick() with the report as its context: reading ends if nobody reads it. */
int diff_report_tick(void *context);

/*
 * Writes the last interval at the end of the recording. Returns 0, or the first error of the whole
 * report as a negative errno, reported.
 */
int diff_report_finish(struct diff_report *report);

#endif
