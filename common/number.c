/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/number.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>

int number_parse(const char *text, uint64_t *ret)
{
	char *end;

	/* strtoull() accepts signs and leading blanks. */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

/* Reads a number at the beginning of @text. Returns 0, or -EINVAL. */
static int read_fraction(const char *text, char **ret_end, double *ret)
{
	/* strtod() accepts signs, leading blanks, "inf" and "nan". */
	if (!isdigit((unsigned char)*text) && *text != '.')
		return -EINVAL;
	errno = 0;
	*ret = strtod(text, ret_end);
	return errno || *ret_end == text ? -EINVAL : 0;
}

int number_parse_fraction(const char *text, double *ret)
{
	char *end;

	return read_fraction(text, &end, ret) || *end ? -EINVAL : 0;
}

int number_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double seconds;
	} units[] = {{"", 1},	{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
		     {"m", 60}, {"min", 60},  {"h", 3600},  {"d", 86400}};
	double number;
	char *end;

	if (read_fraction(text, &end, &number))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		if (number * units[i].seconds > 1e9)
			return -EINVAL;
		*ret_ns = (uint64_t)(number * units[i].seconds * 1e9 + 0.5);
		return 0;
	}
	return -EINVAL;
}
