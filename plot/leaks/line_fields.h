/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words of a line of a `leaks` file (docs/leaks-format.md). Nothing is trusted: a word may be
 * missing (NULL), a number too large. Functions return 0 or -EINVAL, and report nothing.
 */
#ifndef LEAKTOOLS_PLOT_LINE_FIELDS_H
#define LEAKTOOLS_PLOT_LINE_FIELDS_H

#include <stdint.h>

/* Cuts the next word off *@cursor. Returns it, or NULL at the line's end. */
char *line_next_field(char **cursor);

/* A number that is all of @text, at most @max. */
int field_parse_number(const char *text, int base, uint64_t max, uint64_t *ret);
int field_parse_u32(const char *text, uint32_t *ret);

/* A process's or thread's number; -1 where the kernel had none to give. */
int field_parse_id(const char *text, int32_t *ret);

/* A hexadecimal number with 0x. */
int field_parse_address(const char *text, uint64_t *ret);

/* "SECONDS.NNNNNNNNN" in nanoseconds; changes @text. */
int field_parse_time(char *text, uint64_t *ret_ns);

/* A name, unescaped in place. */
int field_parse_name(char *word, const char **ret);

#endif
