/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse --summary: one screen of text that says what leaks and where. */
#ifndef LEAKTOOLS_REPORT_SUMMARY_REPORT_H
#define LEAKTOOLS_REPORT_SUMMARY_REPORT_H

#include "report/text/summary_rows.h"

/* Writes the summary. Returns 0, -ENOMEM or -EIO, unreported. */
int summary_report_write(FILE *out, const struct leak_report *report,
			 const struct summary_report_style *style);

#endif
