/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the HTML report's tables as JSON, column by column; report/html/page/model.js reads them.
 * A column whose values mostly follow from another one holds the difference, which is mostly 0.
 */
#ifndef LEAKTOOLS_REPORT_HTML_COLUMNS_H
#define LEAKTOOLS_REPORT_HTML_COLUMNS_H

#include "report/html/html_tables.h"

#include <stdio.h>

/* Writes all tables, each followed by a comma. Errors of @out are the caller's to check. */
void html_columns_write(FILE *out, const struct html_tables *tables);

/* Limits @number to 2^53: a JavaScript number holds integers up to there exactly. */
int64_t html_json_number(uint64_t number);

/* Microseconds since the recording's first event. */
int64_t html_time_us(const struct html_tables *tables, uint64_t time_ns);

#endif
