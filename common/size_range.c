/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/size_range.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

/* A number as it is written, before its unit is applied. */
struct written_size {
	double number;	/* if not @is_whole: it has a fraction */
	uint64_t whole; /* the number, if @is_whole */
	bool is_whole;
	unsigned int shift; /* the unit's; 0: bytes */
	bool has_unit;
};

/* Parses "k", "kB", "KiB" and so on, or "B". Returns its end, which is @text without a unit. */
static const char *parse_unit(const char *text, struct written_size *size)
{
	static const char letters[] = "kmgt";
	const char *letter = *text ? strchr(letters, tolower((unsigned char)*text)) : NULL;

	if (letter) {
		size->shift = 10 * (unsigned int)(letter - letters + 1);
		size->has_unit = true;
		text++;
		if (*text == 'i' && text[1] == 'B')
			text++;
	} else if (*text == 'B') {
		size->has_unit = true;
	}
	return *text == 'B' ? text + 1 : text;
}

static int parse_written(const char *text, const char **end, struct written_size *ret)
{
	char *stop;

	*ret = (struct written_size){0};
	/* strtoull() accepts signs and leading blanks. */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	ret->whole = strtoull(text, &stop, 0);
	ret->is_whole = true;
	if (errno)
		return -EINVAL;
	/* Two dots belong to a range. */
	if (*stop == '.' && isdigit((unsigned char)stop[1])) {
		for (stop++; isdigit((unsigned char)*stop); stop++)
			;
		ret->number = strtod(text, NULL);
		ret->is_whole = false;
	}
	*end = parse_unit(stop, ret);
	return 0;
}

static int to_bytes(const struct written_size *size, unsigned int shift, uint64_t *ret)
{
	double bytes = size->number * (double)(1ULL << shift);

	if (size->is_whole) {
		*ret = size->whole << shift;
		return *ret >> shift == size->whole ? 0 : -EINVAL;
	}
	/* A fraction of bytes is not a size. */
	if (shift == 0 || bytes >= 0x1p63)
		return -EINVAL;
	*ret = (uint64_t)(bytes + 0.5);
	return 0;
}

int size_parse(const char *text, uint64_t *ret)
{
	struct written_size size;

	return parse_written(text, &text, &size) || *text ? -EINVAL
							  : to_bytes(&size, size.shift, ret);
}

int size_range_parse(const char *text, struct size_range *ret)
{
	struct written_size min, max;
	struct size_range range;
	int err = parse_written(text, &text, &min);

	max = min;
	if (!err && strncmp(text, "..", 2) == 0)
		err = parse_written(text + 2, &text, &max);
	if (err || *text || to_bytes(&max, max.shift, &range.max_bytes))
		return -EINVAL;
	if ((min.has_unit || to_bytes(&min, max.shift, &range.min_bytes) ||
	     range.min_bytes > range.max_bytes) &&
	    to_bytes(&min, min.shift, &range.min_bytes))
		return -EINVAL;
	if (range.min_bytes > range.max_bytes)
		return -EINVAL;
	*ret = range;
	return 0;
}

void size_range_write(FILE *out, const struct size_range *range)
{
	fprintf(out, "%" PRIu64, range->min_bytes);
	if (range->max_bytes != range->min_bytes)
		fprintf(out, "..%" PRIu64, range->max_bytes);
}
