/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causes that leakparse --summary lists, each with its verdict, its amounts over time and its
 * callers.
 */
#ifndef LEAKTOOLS_REPORT_SUMMARY_ROWS_H
#define LEAKTOOLS_REPORT_SUMMARY_ROWS_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* What the terminal can show. */
struct summary_report_style {
	bool utf8;
	bool colour;
	bool is_live; /* it is a state of a running recording, which has no stacks: report/live/ */
	size_t columns; /* 0: lines may be of any length */
};

/*
 * Writes as many causes as fit in @nr_lines, but at least three; or options.limit, if it is set.
 * The one that holds most is among them, and so is all growth if there is no terminal. Stores in
 * *@ret_nr how many it wrote. Returns 0 or -ENOMEM; errors of @out are the caller's to check.
 */
int summary_rows_write(FILE *out, const struct leak_report *report, int nr_lines,
		       const struct summary_report_style *style, size_t *ret_nr);

/* Writes one cause with its process, as above. Returns 0 or -ENOMEM. */
int summary_rows_write_one(FILE *out, const struct leak_report *report,
			   const struct leak_cause *cause,
			   const struct summary_report_style *style);

#endif
