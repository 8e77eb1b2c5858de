/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a sandbox says (sandbox.h), as numbers and strings one after the other. Whoever reads it
 * takes it for hostile: a value that is not there, or is not as it must be, makes the whole message
 * bad, and later ones are 0.
 */
#ifndef LEAKTOOLS_COMMON_MESSAGE_H
#define LEAKTOOLS_COMMON_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void message_put_number(FILE *to, uint64_t number);
/* @text may be NULL, which is read as "". */
void message_put_string(FILE *to, const char *text);

struct message_reader {
	const char *at, *end;
	bool is_bad;
};

/* Reads a number from @min to @max. */
int64_t message_get_number(struct message_reader *reader, int64_t min, int64_t max);

/*
 * Reads a string of at most @max bytes without its NUL, all of which are in @allowed; NULL: all
 * that ASCII can print. It points into the message, and is "" if that is bad.
 */
const char *message_get_string(struct message_reader *reader, size_t max, const char *allowed);

#endif
