/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/line_fields.h"

#include "common/diag.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NS_DIGITS 9

char *line_next_field(char **cursor)
{
	char *word = *cursor;

	if (!word || !*word)
		return NULL;
	char *blank = strchr(word, ' ');
	if (blank)
		*blank = '\0';
	*cursor = blank ? blank + 1 : NULL;
	return *word ? word : NULL;
}

int field_parse_number(const char *text, int base, uint64_t max, uint64_t *ret)
{
	char *end;

	/* strtoull() would accept signs and blanks. */
	if (!text || !isxdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	unsigned long long number = strtoull(text, &end, base);
	if (errno || *end || number > max)
		return -EINVAL;
	*ret = number;
	return 0;
}

int field_parse_u32(const char *text, uint32_t *ret)
{
	uint64_t number;

	if (field_parse_number(text, 10, UINT32_MAX, &number))
		return -EINVAL;
	*ret = (uint32_t)number;
	return 0;
}

int field_parse_id(const char *text, int32_t *ret)
{
	uint64_t number = 0;
	bool is_none = text && strcmp(text, "-1") == 0;

	if (!is_none && field_parse_number(text, 10, INT32_MAX, &number))
		return -EINVAL;
	*ret = is_none ? -1 : (int32_t)number;
	return 0;
}

int field_parse_address(const char *text, uint64_t *ret)
{
	if (!text || strncmp(text, "0x", 2) != 0)
		return -EINVAL;
	return field_parse_number(text + 2, 16, UINT64_MAX, ret);
}

int field_parse_time(char *text, uint64_t *ret_ns)
{
	char *dot = text ? strchr(text, '.') : NULL;
	uint64_t seconds, ns;

	if (!dot || strlen(dot + 1) != NS_DIGITS)
		return -EINVAL;
	*dot = '\0';
	if (field_parse_number(text, 10, UINT64_MAX, &seconds) ||
	    field_parse_number(dot + 1, 10, UINT64_MAX, &ns) ||
	    __builtin_mul_overflow(seconds, UINT64_C(1000000000), &seconds) ||
	    __builtin_add_overflow(seconds, ns, ret_ns))
		return -EINVAL;
	return 0;
}

int field_parse_name(char *word, const char **ret)
{
	if (!word)
		return -EINVAL;
	diag_unescape(word);
	*ret = word;
	return 0;
}
