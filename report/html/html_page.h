/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTML report's page, made of report/html/ by embed.cmake: what stands before and behind the
 * data. */
#ifndef LEAKTOOLS_REPORT_HTML_PAGE_H
#define LEAKTOOLS_REPORT_HTML_PAGE_H

extern const unsigned char html_page_before[], html_page_behind[];
extern const unsigned long html_page_before_bytes, html_page_behind_bytes;

#endif
