/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `leakparse --summary`: one screen that tells a person what leaks, and where. */
#ifndef LEAKTOOLS_REPORT_SUMMARY_REPORT_H
#define LEAKTOOLS_REPORT_SUMMARY_REPORT_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* What the reader can show. */
struct summary_report_style {
	bool utf8; /* pictures may be made of other than ASCII */
	bool colour;
};

/* Writes it. Returns 0 or -EIO, not reported. */
int summary_report_write(FILE *out, const struct leak_report *report,
			 const struct summary_report_style *style);

#endif
