/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --call-sites: which calls allocate and release the blocks of a cause, as places in
 * files, so that a recorder can put probes on these calls alone. docs/leaks-format.md, "Call
 * sites", has the format.
 */
#ifndef LEAKTOOLS_REPORT_CALL_SITES_TEXT_H
#define LEAKTOOLS_REPORT_CALL_SITES_TEXT_H

#include "parser/statistics/release_counts.h"
#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* A heap_observer.on_change(): counts the calls that release, in @counts. */
void call_sites_change(void *counts, const struct heap_change *change);

/* True if @report has such a row, counted from 1 as the summary counts them. If not, reports it. */
bool call_sites_has_row(const struct leak_report *report, size_t row);

/* Writes the text about a row that there is. Returns 0, -EIO, or -ENOMEM. */
int call_sites_write(FILE *out, const struct leak_report *report, size_t row,
		     const struct release_counts *releases);

#endif
