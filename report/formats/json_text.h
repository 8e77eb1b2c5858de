/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON's strings. What they are told is untrusted. */
#ifndef LEAKTOOLS_REPORT_JSON_TEXT_H
#define LEAKTOOLS_REPORT_JSON_TEXT_H

#include <stdio.h>

/*
 * Writes @text in quotes, or null for NULL. The result is valid UTF-8: bytes that are not become
 * U+FFFD each. "<" and the line separators U+2028 and U+2029 are escaped, so that it may stand in
 * a script of an HTML page.
 */
void json_write_string(FILE *out, const char *text);

/* "name": */
void json_write_key(FILE *out, const char *name);

#endif
