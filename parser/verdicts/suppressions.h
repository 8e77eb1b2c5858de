/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Suppressions of known leaks, in LeakSanitizer's file syntax:
 *
 *   # comment
 *   leak:PATTERN
 *
 * A pattern matches a function, source file or module of any frame that contains it; `*` stands for
 * any text, `^` at its beginning and `$` at its end anchor it.
 */
#ifndef LEAKTOOLS_PARSER_SUPPRESSIONS_H
#define LEAKTOOLS_PARSER_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct suppression {
	char *pattern;
	size_t line;
	uint64_t blocks, bytes; /* what it has hidden */
	bool used;
};

struct suppressions {
	struct suppression *list;
	size_t nr;
};

/* Reads @path. Returns 0 or a negative errno, reported with the line. */
int suppressions_read(struct suppressions *suppressions, const char *path);
void suppressions_deinit(struct suppressions *suppressions);

/* The first that matches @name (NULL: none does), or NULL. */
struct suppression *suppressions_find(const struct suppressions *suppressions, const char *name);

/* True if @text (NULL: never) fits @pattern. */
bool suppression_matches(const char *pattern, const char *text);

/* Sets what they have left out to 0. */
void suppressions_reset(struct suppressions *suppressions);

#endif
