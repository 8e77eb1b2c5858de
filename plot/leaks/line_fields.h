/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses the fields of a line of a `leaks` file (docs/leaks-format.md). The file is untrusted: a
 * field may be missing (NULL) or a number too large. Functions return 0 or -EINVAL, unreported.
 */
#ifndef LEAKTOOLS_PLOT_LINE_FIELDS_H
#define LEAKTOOLS_PLOT_LINE_FIELDS_H

#include <stdint.h>

/* Cuts the next field off *@cursor. Returns it, or NULL at the end of the line. */
char *line_next_field(char **cursor);

/* A number up to @max; @text must contain nothing else. */
int field_parse_number(const char *text, int base, uint64_t max, uint64_t *ret);
int field_parse_u32(const char *text, uint32_t *ret);

/* A PID or TID; -1 if the kernel had none. */
int field_parse_id(const char *text, int32_t *ret);

/* A hexadecimal number with 0x. */
int field_parse_address(const char *text, uint64_t *ret);

/* "SECONDS.NNNNNNNNN", in nanoseconds. Modifies @text. */
int field_parse_time(char *text, uint64_t *ret_ns);

/* A name, which is unescaped in place. */
int field_parse_name(char *word, const char **ret);

#endif
