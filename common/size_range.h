/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block sizes as people give them: "3072", or a range with both ends included, "1000..2000". */
#ifndef LEAKTOOLS_COMMON_SIZE_RANGE_H
#define LEAKTOOLS_COMMON_SIZE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct size_range {
	uint64_t min_bytes;
	uint64_t max_bytes;
};

/* Returns 0, or -EINVAL if @text is no size or range (nothing is reported). */
int size_range_parse(const char *text, struct size_range *ret);

static inline bool size_range_has(const struct size_range *range, uint64_t size_bytes)
{
	return size_bytes >= range->min_bytes && size_bytes <= range->max_bytes;
}

#endif
