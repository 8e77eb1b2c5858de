/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes JSON strings from untrusted text. */
#ifndef LEAKTOOLS_COMMON_JSON_TEXT_H
#define LEAKTOOLS_COMMON_JSON_TEXT_H

#include <stdio.h>

/*
 * Writes @text in quotes, or null for NULL. The result is valid UTF-8: each invalid byte becomes
 * U+FFFD. "<" and the line separators U+2028 and U+2029 are escaped, so that the result is safe in
 * a script element of an HTML page.
 */
void json_write_string(FILE *out, const char *text);

/*
 * The same for text that people read: what diag_print_escaped() writes of @text, as \xNN what is
 * invisible or would change how the rest is shown.
 */
void json_write_readable(FILE *out, const char *text);

/* Writes "name": with the quotes and the colon. */
void json_write_key(FILE *out, const char *name);

#endif
