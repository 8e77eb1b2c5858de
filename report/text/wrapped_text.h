/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text for a terminal: lines that are too long for it are broken between words. */
#ifndef LEAKTOOLS_REPORT_WRAPPED_TEXT_H
#define LEAKTOOLS_REPORT_WRAPPED_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes the lines of @text, each of which ends with a newline, in at most @columns (0: of any
 * length); what continues a line is indented. Colours take no column; what stands in brackets is
 * not broken, nor is a word. Returns the number of lines.
 */
int wrapped_text_write(FILE *out, const char *text, size_t columns);

/* The columns of a text without line ends, and the bytes of its beginning that fit in @columns. */
size_t wrapped_text_columns(const char *text);
size_t wrapped_text_bytes(const char *text, size_t columns);

#endif
