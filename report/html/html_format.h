/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse --format html: one file that a browser shows (docs/html-report.md). */
#ifndef LEAKTOOLS_REPORT_HTML_FORMAT_H
#define LEAKTOOLS_REPORT_HTML_FORMAT_H

#include "report/formats/report_format.h"

extern const struct report_format html_format;

#endif
