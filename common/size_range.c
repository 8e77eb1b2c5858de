/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/size_range.h"

#include <ctype.h>
#include <errno.h>

static int parse_size(const char *text, const char **end, uint64_t *ret)
{
	char *stop;

	/* strtoull() takes signs and blanks, a size has none. */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &stop, 0);
	*end = stop;
	return errno ? -EINVAL : 0;
}

int size_range_parse(const char *text, struct size_range *ret)
{
	struct size_range range;

	if (parse_size(text, &text, &range.min_bytes))
		return -EINVAL;
	range.max_bytes = range.min_bytes;
	if (strncmp(text, "..", 2) == 0 && parse_size(text + 2, &text, &range.max_bytes))
		return -EINVAL;
	if (*text || range.min_bytes > range.max_bytes)
		return -EINVAL;
	*ret = range;
	return 0;
}
