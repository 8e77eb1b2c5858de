/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to the person at the terminal, on stderr: "leakrec: what failed: why; what to do".
 * The function that knows the cause of an error reports it, once; its callers pass the code on.
 *
 * Text from a target (names, paths, symbols) is untrusted: control characters are printed as \xNN,
 * so that no message can control the terminal. So are invalid UTF-8 and invisible characters, such
 * as those that change the direction of writing: they could make a line look like another one.
 *
 * Where stderr is systemd's journal, each line begins with its priority.
 */
#ifndef LEAKTOOLS_COMMON_DIAG_H
#define LEAKTOOLS_COMMON_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The exit statuses that all tools share (docs/man). */
enum diag_exit {
	DIAG_EXIT_OK = 0,
	DIAG_EXIT_FAILED = 1,
	DIAG_EXIT_USAGE = 2,
};

/*
 * The first that a tool does. Sets its name in messages; @name is not copied. If standard input,
 * output or error are closed, no file that is opened later takes their place: messages and results
 * would be written into it. Programs that are started have them closed, too.
 */
void diag_begin(const char *name);

/* An error: the operation failed. Prints one line and adds the newline. */
void diag_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * An error @err, an errno value, of writing @what to standard output. A reader that has closed the
 * pipe has read enough: nothing is printed then.
 */
void diag_output_failed(const char *what, int err);
/*
 * Keeps in *@first, which is 0 at first, why @out could not be written. To be called after each
 * group of writes, with errno 0 before it: a later flush has nothing left that could fail.
 */
void diag_keep_output_error(FILE *out, int *first);
/* If @out is a pipe, whether its reader has gone, which else only a write would tell. */
bool diag_output_is_left(FILE *out);
/*
 * If @err (EPERM or EACCES, with any sign) says that a right is missing, returns "; " and advice,
 * which depends on whether this is root already, and on kernel lockdown. Else returns "".
 */
const char *diag_rights_hint(int err);
/* "; " and advice if the kernel refuses tracing to all, and shows that. Else "". */
const char *diag_lockdown_hint(void);
/* A warning: something is wrong, but the work goes on. */
void diag_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Information. */
void diag_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints lines that another process of this tool would have printed, but may be made to forge. */
void diag_relay(const char *lines);

/*
 * Writes @text with control and invisible characters, backslashes, invalid UTF-8 and any character
 * of @also (NULL for none) as \xNN. All line-based output is escaped by this: a `leaks` file passes
 * " \t" so that a column stays one word. Returns 0, or -EIO if the stream failed.
 */
int diag_print_escaped(FILE *out, const char *text, const char *also);

/*
 * Writes lines that were escaped already, but may be forged: line ends, tabs and backslashes stay
 * as they are. Returns 0, or -EIO if the stream failed.
 */
int diag_print_relayed(FILE *out, const char *lines);

/* Decodes \xNN in place, except an escaped NUL, which would end the text. */
void diag_unescape(char *text);

/* True for a Unicode character that is invisible but may change how others are shown. */
bool diag_is_invisible(uint32_t character);

#endif
