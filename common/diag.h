/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to the person at the terminal, on stderr: "leakrec: what failed: why; what to do".
 * The function that knows the cause of an error reports it, once; its callers pass the code on.
 *
 * Whatever comes from a target (names, paths, symbols) is untrusted: control characters are shown
 * as \xNN, so that no message can drive the terminal. So is invalid UTF-8, and what makes a line
 * look like another one: characters that turn the direction of writing, and others that show
 * nothing.
 */
#ifndef LEAKTOOLS_COMMON_DIAG_H
#define LEAKTOOLS_COMMON_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The exit statuses all tools share (docs/man). */
enum diag_exit {
	DIAG_EXIT_OK = 0,
	DIAG_EXIT_FAILED = 1,
	DIAG_EXIT_USAGE = 2,
};

/* Names the tool in every message. @name is kept, not copied. */
void diag_set_tool(const char *name);

/* An error: the operation failed. One line; a newline is added. */
void diag_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Something is off, the work goes on. */
void diag_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* News that is not a problem. */
void diag_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Writes @text with control and invisible characters, backslashes, invalid UTF-8 and any character
 * of @also (NULL for none) as \xNN. The one escape of all line-based output: a `leaks` file passes
 * " \t" so that a column stays one word. Returns 0, or -EIO if the stream failed.
 */
int diag_print_escaped(FILE *out, const char *text, const char *also);

/* Whether a Unicode character shows nothing itself, but may change how others are shown. */
bool diag_is_invisible(uint32_t character);

#endif
