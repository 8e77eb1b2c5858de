/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HTML page before and after the data, as bytes. embed.cmake generates them from
 * report/html/page/.
 */
#ifndef LEAKTOOLS_REPORT_HTML_PAGE_H
#define LEAKTOOLS_REPORT_HTML_PAGE_H

extern const unsigned char html_page_before[], html_page_after[];
extern const unsigned long html_page_before_bytes, html_page_after_bytes;

#endif
